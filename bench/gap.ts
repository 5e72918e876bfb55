import { execFileSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../src/base/clock.ts'
import { message, reply, shell } from '../src/demo/model/reply.ts'
import { startScriptedModel } from '../src/demo/model/scripted-model.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import { writePeer } from '../tests/support/scripted-peer.ts'
import { atMost, type Figure } from './figure.ts'
import { median } from './median.ts'
import { ANSWER_VERSION } from './peers.ts'
import { findNativeCodex } from './rounds.ts'
import { runCodemachine } from './run-command.ts'
import { gapsOf, RELAY, readStamps, STAMPED_TURN } from './stamps.ts'

const MANY_ROUNDS = 500
const CODEX_ROUNDS = 60
const LARGE_ROUNDS = 20
const LARGE_FILES = 50_000
/** In codex's turns, so that the next app-server is ready before the turn ends, as it is in any real turn. */
const THINKING_MS = 300

/** From one round's `turn/completed` to the next one's `turn/start`: what codemachine itself adds to every round. */
export async function gap(): Promise<Figure[]> {
  return [...(await withPeers()), ...(await withCodex()), ...(await inLargeRepository())]
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
    { what: `${MANY_ROUNDS} rounds of a scripted peer`, value: median(gaps), unit: 'ms', target: atMost(25) },
    { what: 'the first 20', value: early, unit: 'ms', target: null },
    { what: 'the last 20, against the first', value: late / early, unit: 'x', target: atMost(1.3) },
  ]
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
  const stamps = join(place.root, 'stamps')
  const relay = join(place.root, 'relay.mjs')
  await writeFile(relay, `#!${process.execPath}\n${RELAY({ stamps, codex: await findNativeCodex() })}`, { mode: 0o755 })
  const gaps = await playRounds(place, relay, stamps, CODEX_ROUNDS)
  return [{ what: `${CODEX_ROUNDS} rounds of codex`, value: median(gaps), unit: 'ms', target: atMost(25) }]
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
    { what: 'against git status', value: median(gaps) / status, unit: 'x', target: atMost(1.5) },
  ]
}

async function playRounds(place: TestPlace, codex: string, stamps: string, rounds: number): Promise<number[]> {
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
  git('add', '.')
  git('commit', '-qm', 'Many files')
}
