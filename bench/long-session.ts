import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Recorded } from '../src/core/events/events.ts'
import { OWN_TEMPLATES } from '../src/modes/registry.ts'
import { openRecords, type Records } from '../src/session/records/records.ts'
import type { TestPlace } from '../tests/support/place.ts'
import { writePeer } from '../tests/support/scripted-peer.ts'
import { ANSWER_VERSION, FLOOD } from './peers.ts'
import { runCodemachine } from './run-command.ts'

const GOAL = 'Port it.'
/** What one round lasts in the journal, so that each has moments of its own. */
const ROUND_MS = 15_000
/** Events of a round that are not told by codex: its start and end, the start of its turn, the savepoint of the one before. */
const OWN_EVENTS = 4

/** The peer that plays its rounds: each changes a file, and tells so many events. */
export async function writeLongPeer(place: TestPlace, eventsOfARound: number): Promise<string> {
  return await writePeer(
    place.root,
    `${ANSWER_VERSION}${FLOOD}
    import { appendFileSync } from 'node:fs'
    const brief = itemCompleted({ ...command.params.item, aggregatedOutput: 'src/a.ts: ok\\n'.repeat(20) })
    const kinds = [thought, usage, said, brief].map(each => JSON.stringify(each) + '\\n')
    on['turn/start'] = id => {
      send({ id, result: { turn: { id: TURN } } })
      started()
      raw(Array.from({ length: ${eventsOfARound - OWN_EVENTS} }, (_, n) => kinds[n % kinds.length]).join(''))
      appendFileSync('notes.txt', 'more\\n')
      completed()
    }`,
  )
}

/**
 * Makes a session of so many rounds in a place: codemachine itself plays three, and the journal says of the one in the
 * middle that it was played again and again, with other moments and other files each time. It ended at its limit.
 * @returns its id
 */
export async function makeLongSession(place: TestPlace, rounds: number, eventsOfARound: number): Promise<string> {
  const peer = await writeLongPeer(place, eventsOfARound)
  await runCodemachine(['--json', '--rounds', '3', '--codex-bin', peer, GOAL], 3, {
    cwd: place.directory,
    env: place.env,
  })
  const { home, directory, env } = place
  const records = await openRecords({ directory, env, home, platform: process.platform, templates: OWN_TEMPLATES })
  const [id = ''] = await records.sessions()
  await stretch(records.journal(id), rounds)
  await renameSavepoints(records, id, rounds)
  return id
}

async function stretch(path: string, rounds: number): Promise<void> {
  const [head = '', ...lines] = (await readFile(path, 'utf8')).trimEnd().split('\n')
  const events = lines.map(
    line => JSON.parse(line.replaceAll('"limits":{"rounds":3,', `"limits":{"rounds":${rounds},`)) as Recorded,
  )
  const startOf = (round: number) => {
    const at = events.findIndex(event => event.type === 'round-started' && event.round === round)
    if (at === -1) throw new Error(`Round ${round} was not played: ${path}`)
    return at
  }
  const [second, third] = [startOf(2), startOf(3)]
  const end = Date.now()
  const momentOf = (round: number) => new Date(end - (rounds - round + 1) * ROUND_MS).toISOString()
  const part = (from: number, to: number | undefined, round: number) => new Pattern(events.slice(from, to), round)
  const out = createWriteStream(`${path}.new`, { mode: 0o600 })
  const write = async (text: string) => {
    if (!out.write(text)) await once(out, 'drain')
  }
  await write(`${head}\n${part(0, second, 1).text(1, momentOf(1))}`)
  const middle = part(second, third, 2)
  for (let round = 2; round < rounds; round++) await write(middle.text(round, momentOf(round)))
  await write(part(third, undefined, 3).text(rounds, momentOf(rounds)))
  out.end()
  await once(out, 'close')
  await rename(`${path}.new`, path)
}

/** Events of one round, and what belongs to the one before it, as they are when it is another round. */
class Pattern {
  readonly #text: string

  constructor(events: readonly Recorded[], round: number) {
    const lines = events.map(event => {
      const ofThis = JSON.stringify({ ...event, at: '@at' })
      const named = ofThis
        .replace(`"round":${round},`, '"round":@round,')
        .replace(`"round":${round - 1},`, '"round":@before,')
        .replace(`"rounds":${round},"tokens"`, '"rounds":@round,"tokens"')
      return round === 2 ? named.replaceAll(/"[0-9a-f]{8}([0-9a-f]{32})"/g, '"@hash$1"') : named
    })
    this.#text = `${lines.join('\n')}\n`
  }

  text(round: number, at: string): string {
    return this.#text
      .replaceAll('@at', at)
      .replaceAll('@round', String(round))
      .replaceAll('@before', String(round - 1))
      .replaceAll('@hash', round.toString(16).padStart(8, '0'))
  }
}

/** As many savepoints as the journal tells of, all of the same commit but the last. */
async function renameSavepoints({ git }: Records, id: string, rounds: number): Promise<void> {
  const name = (round: number) => `refs/savepoints/${id}/${String(round).padStart(3, '0')}`
  const commits = await Promise.all([2, 3].map(async round => (await readFile(join(git, name(round)), 'utf8')).trim()))
  const refs = Array.from({ length: rounds - 2 }, (_, n) => n + 3)
  const lines = refs.map(round => `update ${name(round)} ${round === rounds ? commits[1] : commits[0]}\n`)
  execFileSync('git', ['update-ref', '--stdin'], { env: { ...process.env, GIT_DIR: git }, input: lines.join('') })
}
