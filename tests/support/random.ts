/** Numbers that look random and follow from a seed: the same seed, the same numbers. */
export interface Random {
  /** A whole number from 0 up to, but not including, this one. */
  below(limit: number): number
  /** One of these; they are not none. */
  one<T>(of: readonly [T, ...T[]]): T
}

/** By mulberry32. */
export function randomFrom(seed: number): Random {
  let state = seed | 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return { below, one: of => of[below(of.length)] ?? of[0] }
}

/** The seed of this run, printed so that the run can be had again: `SEED=… npm run test:long`. */
export function seedOfRun(what: string): number {
  const said = Number(process.env.SEED)
  const seed = Number.isInteger(said) && said > 0 ? said : Math.floor(Math.random() * 1_000_000)
  process.stdout.write(`The seed of ${what}: SEED=${seed}\n`)
  return seed
}
