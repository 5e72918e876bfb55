/** Throws unless the two are the same. */
export function equal(found, wanted) {
  if (found !== wanted) throw new Error(`found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`)
}
