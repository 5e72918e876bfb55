import { posix } from 'node:path'

/** What the choice of tests goes by; paths are relative to the checkout, with `/`. */
export interface Checkout {
  /** The text of each file of `src`, `scripts`, `bench` and `tests`. */
  texts: ReadonlyMap<string, string>
  /** How long each test file took when it ran last, ms; not known where it is missing. */
  durations: ReadonlyMap<string, number>
}

export interface NearTest {
  path: string
  /** How many imports, or promises, lie between it and the change; 0: it has changed itself. */
  distance: number
  /** How long it takes, ms: as it did last, or as one of its kind does. */
  ms: number
}

const IS_TEST = /^tests\/.*(?<!\.long)\.test\.tsx?$/
/** Tests of the house: they read all files. */
const OF_ALL_FILES = /^tests\/architecture\//
/** A test that holds the same promise as one at hand, or a promise of the folder. */
const BY_PROMISE = 2
const BY_ALL_FILES = 3
/** How long a test file takes that nobody has measured, by what it imports, ms. */
const BY_KIND = [
  { imports: /support\/(?:real-scene|codemachine|emulator)\.ts'/, ms: 15_000 },
  { imports: /support\/(?:[a-z-]*scene|in-process)\.ts'/, ms: 4_000 },
  { imports: /^/, ms: 500 },
]

/**
 * The test files that a change of these files can break, the nearest first. A test is near by its imports, and by the promises
 * that it holds together with a test of the folder that has changed.
 */
export function testsNear(changed: readonly string[], { texts, durations }: Checkout): NearTest[] {
  const importers = importersOf(texts)
  const distances = spread(
    changed.flatMap(path => (texts.has(path) ? [{ path, distance: 0 }] : mentionsOf(path, texts))),
    importers,
  )
  const folders = changed.map(path => `${posix.dirname(path).replace(/^src\b/, 'tests')}/`)
  const isOfFolder = (path: string) => folders.some(folder => path.startsWith(folder))
  const isAtHand = (path: string) => isOfFolder(path) || (distances.get(path) ?? Number.POSITIVE_INFINITY) <= 1
  for (const held of testsOfPromises(texts).filter(held => held.some(isAtHand))) {
    for (const path of held) distances.set(path, Math.min(BY_PROMISE, distances.get(path) ?? BY_PROMISE))
  }
  for (const path of texts.keys()) {
    if (OF_ALL_FILES.test(path) && !distances.has(path)) distances.set(path, BY_ALL_FILES)
  }
  return [...distances]
    .filter(([path]) => IS_TEST.test(path) && texts.has(path))
    .map(([path, distance]) => ({ path, distance, ms: durations.get(path) ?? msByKind(texts.get(path) ?? '') }))
    .sort((a, b) => a.distance - b.distance || a.ms - b.ms || (a.path < b.path ? -1 : 1))
}

/** As many of the nearest as fit into that time together, ms; those that have changed themselves whatever they take. */
export function fitting(tests: readonly NearTest[], ms: number): { chosen: NearTest[]; left: NearTest[] } {
  const [chosen, left]: NearTest[][] = [[], []]
  let rest = ms
  for (const test of tests) {
    const fits = test.distance === 0 || test.ms <= rest
    if (fits) rest -= test.ms
    ;(fits ? chosen : left)?.push(test)
  }
  return { chosen: chosen ?? [], left: left ?? [] }
}

/** Of each file, those that name it by a relative path: in an import, or as the path of a program. */
function importersOf(texts: ReadonlyMap<string, string>): Map<string, string[]> {
  const importers = new Map<string, string[]>()
  for (const [importer, text] of texts) {
    for (const [, specifier = ''] of text.matchAll(/'(\.{1,2}\/[^'\n]+)'/g)) {
      const path = posix.join(posix.dirname(importer), specifier)
      if (texts.has(path)) importers.set(path, [...(importers.get(path) ?? []), importer])
    }
  }
  return importers
}

/** Of a page, a prompt or a setting, the files that name it. */
function mentionsOf(path: string, texts: ReadonlyMap<string, string>): { path: string; distance: number }[] {
  const name = posix.basename(path)
  return [...texts].filter(([, text]) => text.includes(name)).map(([path]) => ({ path, distance: 1 }))
}

/** How many imports lie between each file and the nearest of these. */
function spread(
  from: readonly { path: string; distance: number }[],
  importers: ReadonlyMap<string, readonly string[]>,
): Map<string, number> {
  const distances = new Map<string, number>()
  let reached = from
  while (reached.length > 0) {
    const fresh = reached.filter(({ path }) => !distances.has(path))
    for (const { path, distance } of fresh) distances.set(path, Math.min(distance, distances.get(path) ?? distance))
    reached = fresh.flatMap(({ path, distance }) =>
      (importers.get(path) ?? []).map(importer => ({ path: importer, distance: distance + 1 })),
    )
  }
  return distances
}

/** The test files of each promise (`tests/support/promise.ts`). */
function testsOfPromises(texts: ReadonlyMap<string, string>): string[][] {
  const files = new Map<string, Set<string>>()
  for (const [path, text] of texts) {
    for (const [, id = ''] of text.matchAll(/^ *promise\('([A-Z]\d+)'/gm))
      files.set(id, (files.get(id) ?? new Set()).add(path))
  }
  return [...files.values()].map(held => [...held])
}

function msByKind(text: string): number {
  return BY_KIND.find(({ imports }) => imports.test(text))?.ms ?? 0
}
