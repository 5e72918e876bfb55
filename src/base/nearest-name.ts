/** The known name that was most likely meant: at most a third of its letters differ, not counting case and dashes. */
export function nearestName(written: string, known: readonly string[]): string | null {
  const distances = known.map(name => ({ name, distance: editDistance(plain(written), plain(name)) }))
  const near = distances.filter(({ name, distance }) => distance <= Math.max(1, Math.floor(name.length / 3)))
  return near.sort((a, b) => a.distance - b.distance)[0]?.name ?? null
}

function plain(name: string): string {
  // No name is longer; the distance takes the product of the lengths.
  return name.slice(0, 100).toLowerCase().replace(/[-_]/g, '')
}

/** Levenshtein's: how many letters have to be added, taken away or replaced. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1]
    for (let j = 1; j <= to.length; j++) {
      const replaced = at(row, j - 1) + (to[j - 1] === letter ? 0 : 1)
      next.push(Math.min(replaced, at(row, j) + 1, at(next, j - 1) + 1))
    }
    row = next
  }
  return at(row, to.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY
}
