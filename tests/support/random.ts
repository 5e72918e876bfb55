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

/** The seed of this run of the tests (`seed.ts`). */
export const SEED = Number(process.env.SEED ?? 1)

/** One of every so many, as `SLICE` says (`.ci/run` plays a fifth of each kill matrix); all, where it says nothing. The seed says which ones; of few it is one. */
export function sliceOf<T>(all: readonly T[]): T[] {
  const every = Number(process.env.SLICE ?? 1)
  const sliced = all.filter((_, at) => (at + SEED) % every === 0)
  return sliced.length > 0 ? sliced : all.slice(SEED % all.length).slice(0, 1)
}
