import { spawnSync } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { message, reply, shell } from '../src/demo/model/reply.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import { startScriptedModel } from '../tests/support/scripted-model.ts'
import { writePeer } from '../tests/support/scripted-peer.ts'
import { atMost, type Figure, shown } from './figure.ts'
import { median } from './median.ts'
import { ANSWER_VERSION } from './peers.ts'
import { findNativeCodex } from './rounds.ts'
import { BIN, type CommandOptions, runCommand } from './run-command.ts'
import { STAMPED_TURN } from './stamps.ts'

const GOAL = 'Keep the README of this project up to date.'
/** A round costs what so many rounds cost beyond these few, divided by how many they are more. */
const FEW_ROUNDS = 5
const MANY_ROUNDS = 45
const RUNS = 5
const EXECS_PER_RUN = 5
/** How often a peer is started alone, to see what it does not see of its own time. */
const LONE_PEERS = 10

/** What each round costs the machine beyond codex: processes, and time on the processor. */
export async function cost(): Promise<Figure[]> {
  return [...(await processes()), ...(await processorTime())]
}

/** Counted by strace where it is installed: every fork of codemachine and of what it starts, threads left out. */
async function processes(): Promise<Figure[]> {
  const target = atMost(4)
  if (spawnSync('strace', ['--version']).status !== 0) {
    return [{ what: 'processes a round (strace is not installed)', value: null, unit: '', target }]
  }
  const few = await countForks(FEW_ROUNDS)
  const many = await countForks(MANY_ROUNDS)
  // In each round one of them is the peer, in codex's place.
  const aRound = (many - few) / (MANY_ROUNDS - FEW_ROUNDS) - 1
  return [{ what: 'processes a round, without codex', value: aRound, unit: '', target }]
}

async function countForks(rounds: number): Promise<number> {
  await using place = await makePlace('')
  const { peer } = await makePeer(place, rounds)
  const log = join(place.root, 'strace')
  const trace = ['-f', '-qq', '-e', 'trace=fork,vfork,clone,clone3', '-e', 'signal=none', '-o', log]
  await runIn(place, 'strace', [...trace, ...rounded(rounds, peer)], 3)
  return forksIn((await readFile(log, 'utf8')).split('\n'))
}

/** How many processes the lines of `strace -f` tell of. A call that another cut in on is in two lines. */
function forksIn(lines: readonly string[]): number {
  const begun = new Map<string, string>()
  let forks = 0
  for (const line of lines) {
    const pid = line.split(' ', 1)[0] ?? ''
    if (line.endsWith('<unfinished ...>')) {
      begun.set(pid, line)
      continue
    }
    const call = line.includes(' resumed>') ? `${begun.get(pid)}${line}` : line
    if (/= [1-9]\d*$/.test(call) && !call.includes('CLONE_THREAD')) forks++
  }
  return forks
}

async function processorTime(): Promise<Figure[]> {
  await using model = await startScriptedModel({
    keptRequests: 1,
    script: request => reply(request.step === 0 ? shell('echo more >> notes.txt') : message('As far as it goes.')),
  })
  await using execPlace = await makePlace(model.codexConfig('scripted'))
  const codex = await findNativeCodex()
  const exec = ['exec', '--json', '--sandbox', 'workspace-write', GOAL]
  // The first start in a CODEX_HOME makes its databases.
  await runIn(execPlace, codex, exec, 0)
  const unseen = await unseenByPeer()
  const execs: number[] = []
  const rounds: number[] = []
  for (let run = 0; run < RUNS; run++) {
    for (let n = 0; n < EXECS_PER_RUN; n++) execs.push(await timeOf(execPlace, codex, exec, 0))
    const [few, many] = [await timeOfRounds(FEW_ROUNDS), await timeOfRounds(MANY_ROUNDS)]
    rounds.push((many - few) / (MANY_ROUNDS - FEW_ROUNDS) - unseen)
  }
  return [
    shown('codex exec, on the processor', median(execs), 'ms'),
    shown('a round of codemachine and its git, without codex', median(rounds), 'ms'),
    { what: 'against codex exec', value: median(rounds) / median(execs), unit: 'x', target: atMost(0.18) },
  ]
}

/** Of rounds of scripted peers in a place of their own, ms; without what the peers know they took. */
async function timeOfRounds(rounds: number): Promise<number> {
  await using place = await makePlace('')
  const { peer, usage } = await makePeer(place, rounds)
  const [program = '', ...args] = rounded(rounds, peer)
  const all = await timeOf(place, program, args, 3)
  return all - (await told(usage))
}

/** What a peer takes that it cannot know of: what comes after it has told, as its exit. ms */
async function unseenByPeer(): Promise<number> {
  await using place = await makePlace('')
  const { peer, usage } = await makePeer(place, 1)
  const unseen: number[] = []
  for (let n = 0; n < LONE_PEERS; n++) {
    await rm(usage, { force: true })
    const all = await timeOf(place, process.execPath, [peer], 0)
    unseen.push(all - (await told(usage)))
  }
  return median(unseen)
}

async function told(usage: string): Promise<number> {
  const lines = (await readFile(usage, 'utf8')).trim().split('\n')
  return lines.reduce((sum, line) => sum + Number(line) / 1000, 0)
}

/** A peer that changes a file in each round, starts no process, and tells at its end, µs, how long it was on the processor. */
async function makePeer(place: TestPlace, rounds: number): Promise<{ peer: string; usage: string }> {
  const usage = join(place.root, 'usage')
  const tell = `
on.end = () => {
  const { user, system } = process.cpuUsage()
  appendFileSync(${JSON.stringify(usage)}, user + system + '\\n')
  process.exit(0)
}
`
  const turn = STAMPED_TURN({ stamps: join(place.root, 'stamps'), rounds, gitStatus: false })
  return { peer: await writePeer(place.root, ANSWER_VERSION + turn + tell), usage }
}

function rounded(rounds: number, peer: string): string[] {
  return [process.execPath, BIN, '--json', '--rounds', String(rounds), '--codex-bin', peer, GOAL]
}

/** Time on the processor of a program and of all that it and its children have waited for, ms; by bash. */
export async function timeOf(
  place: TestPlace,
  program: string,
  args: readonly string[],
  expected: number,
): Promise<number> {
  const path = join(place.root, 'time')
  const script = `TIMEFORMAT='%U %S'; exec 3>&2; { time "$@" 2>&3; } 2>"$TIMES"`
  await runIn(place, 'bash', ['-c', script, 'bash', program, ...args], expected, { TIMES: path })
  const [user = Number.NaN, system = Number.NaN] = (await readFile(path, 'utf8')).trim().split(' ').map(Number)
  return (user + system) * 1000
}

async function runIn(
  { directory, env }: TestPlace,
  program: string,
  args: readonly string[],
  expected: number,
  more: CommandOptions['env'] = {},
): Promise<void> {
  await runCommand(program, args, expected, {
    cwd: directory,
    env: { ...env, CODEMACHINE_STALL_ROUNDS: '100000', ...more },
  })
}
