import { execFileSync } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../src/base/clock.ts'
import { message, reply, shell } from '../src/demo/model/reply.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import { startScriptedModel } from '../tests/support/scripted-model.ts'
import { writePeer } from '../tests/support/scripted-peer.ts'
import { atMost, type Figure, shown } from './figure.ts'
import { median } from './median.ts'
import { ANSWER_VERSION } from './peers.ts'
import { findNativeCodex } from './rounds.ts'
import { runCodemachine, runCommand } from './run-command.ts'
import { gapsOf, RELAY, readStamps, STAMPED_TURN } from './stamps.ts'

const MANY_ROUNDS = 1_000
const CODEX_RUNS = 5
const CODEX_ROUNDS = 15
/** Before each of these runs. */
const EMPTY_RUNS = 5
const LARGE_ROUNDS = 20
const LARGE_FILES = 50_000
/** In codex's turns, so that the next app-server is ready before the turn ends, as it is in any real turn. */
const THINKING_MS = 300

/** From one round's `turn/completed` to the next one's `turn/start`: what codemachine itself adds to every round. */
export async function gap(): Promise<Figure[]> {
  return [...(await withCodex()), ...(await withPeers()), ...(await inLargeRepository())]
}

async function withCodex(): Promise<Figure[]> {
  await using model = await startScriptedModel({
    keptRequests: 1,
    script: async request => {
      if (request.step === 0) return reply(shell('echo more >> notes.txt'))
      await systemClock.wait(THINKING_MS)
      return reply(message('This is as far as it goes.'))
    },
  })
  await using place = await makePlace(model.codexConfig('scripted'))
  const relay = join(place.root, 'relay.mjs')
  const stamps = join(place.root, 'stamps')
  await writeFile(relay, `#!${process.execPath}\n${RELAY({ stamps, codex: await findNativeCodex() })}`, { mode: 0o755 })
  const empty: number[] = []
  const gaps: number[] = []
  for (let run = 0; run < CODEX_RUNS; run++) {
    for (let n = 0; n < EMPTY_RUNS; n++) empty.push((await runCommand(process.execPath, ['-e', '0'], 0)).wallMs)
    await rm(stamps, { force: true })
    gaps.push(median(await playRounds(place, relay, stamps, CODEX_ROUNDS)))
  }
  return [
    shown('node -e 0', median(empty), 'ms'),
    shown(`${CODEX_ROUNDS} rounds of codex`, median(gaps), 'ms'),
    { what: 'against node -e 0', value: median(gaps) / median(empty), unit: 'x', target: atMost(1.2) },
  ]
}

/** Each peer changes a file, and ends its turn when the next one is ready. */
async function withPeers(): Promise<Figure[]> {
  await using place = await makePlace('')
  const stamps = join(place.root, 'stamps')
  const peer = await writePeer(
    place.root,
    ANSWER_VERSION + STAMPED_TURN({ stamps, rounds: MANY_ROUNDS, gitStatus: false }),
  )
  const gaps = await playRounds(place, peer, stamps, MANY_ROUNDS)
  const [early, late] = [median(gaps.slice(0, 20)), median(gaps.slice(-20))]
  return [
    shown(`${MANY_ROUNDS} rounds of a scripted peer`, median(gaps), 'ms'),
    shown('the first 20', early, 'ms'),
    { what: 'the last 20, against the first', value: late / early, unit: 'x', target: atMost(1.2) },
  ]
}

async function inLargeRepository(): Promise<Figure[]> {
  await using place = await makePlace('')
  await fillRepository(place, LARGE_FILES)
  const stamps = join(place.root, 'stamps')
  const peer = await writePeer(
    place.root,
    ANSWER_VERSION + STAMPED_TURN({ stamps, rounds: LARGE_ROUNDS, gitStatus: true }),
  )
  // The first rounds read every file once.
  const gaps = (await playRounds(place, peer, stamps, LARGE_ROUNDS)).slice(3)
  const status = median((await readStamps(stamps)).flatMap(({ what, ns }) => (what === 'status' ? [ns / 1e6] : [])))
  return [
    { what: `git status of ${LARGE_FILES} files`, value: status, unit: 'ms', target: null },
    { what: `${LARGE_FILES} files`, value: median(gaps), unit: 'ms', target: null },
    { what: 'against git status', value: median(gaps) / status, unit: 'x', target: atMost(2.5) },
  ]
}

/** Plays rounds in a place with a codex that stamps; answers their gaps, ms. */
export async function playRounds(place: TestPlace, codex: string, stamps: string, rounds: number): Promise<number[]> {
  await runCodemachine(['--json', '--rounds', String(rounds), '--codex-bin', codex, 'Go on.'], 3, {
    cwd: place.directory,
    env: place.env,
  })
  const gaps = gapsOf(await readStamps(stamps))
  if (gaps.length !== rounds - 1) throw new Error(`${gaps.length + 1} rounds were stamped of ${rounds}.`)
  return gaps
}

/** Commits so many small files in the repository of a place. */
export async function fillRepository({ directory, env }: TestPlace, count: number): Promise<void> {
  for (let folder = 0; folder < 250; folder++) {
    const path = join(directory, `packages/part-${folder % 10}/folder-${folder}`)
    await mkdir(path, { recursive: true })
    const files = Array.from({ length: count / 250 }, (_, n) => n)
    await Promise.all(
      files.map(n => writeFile(join(path, `file-${n}.ts`), `export const value = ${folder * 1000 + n}\n`)),
    )
  }
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'gc.auto=0', ...args], { cwd: directory, env, stdio: 'pipe' })
  git('-c', 'core.looseCompression=1', 'add', '.')
  git('commit', '-qm', 'Many files')
}
