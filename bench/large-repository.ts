import { execFileSync } from 'node:child_process'
import { appendFile, mkdir, statfs, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFingerprints } from '../src/workspace/fingerprint/fingerprint.ts'
import { findRepository } from '../src/workspace/git/git.ts'
import { openSavepoints } from '../src/workspace/savepoints/savepoint-writer.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import { atMost, type Figure, shown } from './figure.ts'
import { fillRepository } from './gap.ts'
import { median } from './median.ts'

const FILES = 50_000
const LARGE_FILES = 20
const LARGE_BYTES = 250_000_000
const CHANGED = 10
const ROUNDS = 25
/** The first ones fill the caches. */
const WARM_UP = 5
/** The large files are all holes but for their beginning; git's objects of them are small. */
const ROOM_BYTES = 3e9

/**
 * In a repository of 50,000 files and 5 GB: what it takes after a round to see what the files are, and to keep them,
 * against `git status`, taking turns.
 */
export async function largeRepository(): Promise<Figure[]> {
  const { bavail, bsize } = await statfs(tmpdir())
  if (bavail * bsize < ROOM_BYTES) {
    return [{ what: `no room in ${tmpdir()} for the repository`, value: null, unit: '', target: null }]
  }
  await using place = await makePlace('')
  const { directory, env } = place
  await makeLargeFiles(place)
  await fillRepository(place, FILES)
  const gitDir = join(place.root, 'git')
  const fingerprints = await openFingerprints({ gitDir, directory, repository: await findRepository(directory), env })
  await using savepoints = openSavepoints(fingerprints)
  const keep = async (round: number) => {
    const tree = await fingerprints.take()
    const taken = performance.now()
    const kept = await savepoints.keep({ session: '20261121_1', round, tree, at: round * 1000 })
    if (kept === null || kept.changes.files !== (round === 0 ? 0 : CHANGED)) throw new Error('No savepoint was made.')
    return taken
  }
  const began = performance.now()
  await keep(0)
  const first = performance.now() - began
  const times = { status: [] as number[], take: [] as number[], keep: [] as number[] }
  for (let round = 1; round <= ROUNDS + WARM_UP; round++) {
    await change(place, round)
    const from = performance.now()
    const taken = await keep(round)
    const kept = performance.now()
    // Once to see what has changed, once warm.
    gitStatus(place)
    const asked = performance.now()
    gitStatus(place)
    if (round <= WARM_UP) continue
    times.status.push(performance.now() - asked)
    times.take.push(taken - from)
    times.keep.push(kept - taken)
  }
  const [status, take, kept] = [median(times.status), median(times.take), median(times.keep)]
  return [
    shown(`the first savepoint of ${FILES} files and 5 GB`, first, 'ms'),
    shown('git status', status, 'ms'),
    shown('fingerprint', take, 'ms'),
    {
      what: `${CHANGED} files changed: fingerprint, against git status`,
      value: take / status,
      unit: 'x',
      target: atMost(2.2),
    },
    shown('savepoint', kept, 'ms'),
    {
      what: 'fingerprint and savepoint, against git status',
      value: (take + kept) / status,
      unit: 'x',
      target: atMost(2.5),
    },
  ]
}

async function makeLargeFiles({ directory }: TestPlace): Promise<void> {
  await mkdir(join(directory, 'data'))
  for (let n = 0; n < LARGE_FILES; n++) {
    const path = join(directory, `data/part-${n}.bin`)
    await writeFile(path, `part ${n}\n`)
    await truncate(path, LARGE_BYTES)
  }
}

async function change({ directory }: TestPlace, round: number): Promise<void> {
  for (let n = 0; n < CHANGED; n++) {
    await appendFile(join(directory, `packages/part-${n}/folder-${n}/file-${n}.ts`), `// ${round}\n`)
  }
}

function gitStatus({ directory, env }: TestPlace): void {
  execFileSync('git', ['status', '--porcelain'], { cwd: directory, env, stdio: 'pipe' })
}
