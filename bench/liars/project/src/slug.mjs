/** The part of an address that names a page. */
export function slug(text) {
  return text.toLowerCase()
}

/** The slugs of many texts; those that are alike have -2, -3, … behind them. */
export function slugs(texts) {
  const seen = new Map()
  return texts.map(text => {
    const name = slug(text)
    const count = (seen.get(name) ?? 0) + 1
    seen.set(name, count)
    return count === 1 ? name : `${name}-${count}`
  })
}
