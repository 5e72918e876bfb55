import { UserError } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import { pathExists, readBoundedText } from '../../platform/files.ts'
import { newestSessions } from '../../project/find.ts'
import { certificatePath } from '../../project/proof/verify.ts'
import { placesAround } from '../../project/worktrees/find.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import { eachEvent } from '../../session/records/journal.ts'
import type { FoundSession } from './places.ts'
import type { Desk } from './tool.ts'
import { reportText } from './tools/read.ts'

/** What can be read of a session. */
const KINDS = {
  report: { name: 'report', mimeType: 'text/markdown', what: 'what was done, proved, refused and asked' },
  certificate: { name: 'certificate', mimeType: 'application/json', what: 'what was proved when it was done' },
  journal: { name: 'journal', mimeType: 'application/x-ndjson', what: 'what happened, an event a line' },
} as const
type Kind = keyof typeof KINDS

const SCHEME = 'codemachine://session'
/** Of so many of the newest sessions of each directory resources are listed; any other can be read by its address. */
const NEWEST = 10
/** The most characters that are read at once. */
const MOST_TEXT = 256 * 1024
const MOST_CERTIFICATE = 4 * 1024 * 1024

/** The resources of the newest sessions of the named directories and their worktrees. */
export async function listResources({ places }: Pick<Desk, 'places'>) {
  const resources: { uri: string; name: string; description: string; mimeType: string }[] = []
  for (const directory of [...places.directories, ...(await places.copies(NEWEST))]) {
    const records = await places.recordsOf(directory)
    for (const place of await placesAround(records, () => {})) {
      for (const id of (await newestSessions(place.records, NEWEST)).reverse()) {
        const hasCertificate = await pathExists(certificatePath(place.records, id))
        for (const [kind, { name, mimeType, what }] of Object.entries(KINDS)) {
          if (kind === 'certificate' && !hasCertificate) continue
          const uri = `${SCHEME}/${place.records.key}/${id}/${kind}`
          const description = `The ${name} of session ${id} in ${clipEnd(place.records.directory, 500)}: ${what}.`
          resources.push({ uri, name: `${id} ${name}`, description, mimeType })
        }
      }
    }
  }
  return { resources }
}

/** How resources are addressed. */
export function listTemplates() {
  const resourceTemplates = Object.entries(KINDS).map(([kind, { name, mimeType, what }]) => ({
    uriTemplate: `${SCHEME}/{place}/{session}/${kind}{?from}`,
    name,
    description: `The ${name} of a session: ${what}. At most ${MOST_TEXT} characters; from is the ${kind === 'journal' ? 'number of the event' : 'character'} to begin with.`,
    mimeType,
  }))
  return { resourceTemplates }
}

/**
 * The text of a resource, at most `MOST_TEXT` characters from the place on that its address names; where there is more, a
 * second content says by what address. A `UserError` if there is no such resource.
 */
export async function readResource({ world, places }: Pick<Desk, 'world' | 'places'>, uri: string) {
  const { key, id, kind, from } = addressOf(uri)
  const records = await places.recordsWithKey(key)
  if (records === null || !(await records.sessions()).includes(id)) throw unknown(uri)
  const redactor = places.redactorOf(records)
  const { text, next } = await textOf({ worktree: null, records, id }, { kind, from, redactor }, world)
  const { mimeType } = KINDS[kind]
  const whole = { uri, mimeType, text }
  if (next === null) return { contents: [whole] }
  const more = `${SCHEME}/${key}/${id}/${kind}?from=${next}`
  return {
    contents: [whole, { uri: more, mimeType: 'text/plain', text: `This is a part. The next part: ${more}` }],
  }
}

/** Without secrets before it is cut, which would leave halves of them. */
async function textOf(
  found: FoundSession,
  { kind, from, redactor }: { kind: Kind; from: number; redactor: Redactor },
  world: Desk['world'],
): Promise<{ text: string; next: number | null }> {
  const { records, id } = found
  if (kind === 'journal') return await eventsFrom(records.journal(id), from, redactor)
  if (kind === 'report') return partFrom(redactor.text(await reportText(found, { world })), from)
  const read = await readBoundedText(certificatePath(records, id), MOST_CERTIFICATE)
  if (typeof read === 'object' && 'text' in read) return partFrom(redactedLines(read.text, redactor), from)
  throw new UserError('CM0702', `Session ${id} has no certificate, because it did not end as done.`)
}

function partFrom(text: string, from: number): { text: string; next: number | null } {
  const end = from + MOST_TEXT
  return { text: text.slice(from, end), next: end < text.length ? end : null }
}

/** Events as lines, from the one with a number on (the first is 0), as many as there is room for. */
async function eventsFrom(
  path: string,
  from: number,
  redactor: Redactor,
): Promise<{ text: string; next: number | null }> {
  const lines: string[] = []
  let room = MOST_TEXT
  let number = 0
  let next: number | null = null
  await eachEvent(path, event => {
    const at = number
    number += 1
    if (at < from || next !== null) return
    const line = redactor.line(JSON.stringify(event))
    // One that is larger than all the room is given cut: what comes after it can be reached.
    const isFirst = lines.length === 0
    if (line.length > room && !isFirst) next = at
    else lines.push(line.length > room ? JSON.stringify({ type: event.type, cut: clipEnd(line, MOST_TEXT / 2) }) : line)
    room -= line.length + 1
  })
  return { text: lines.map(line => `${line}\n`).join(''), next }
}

function redactedLines(text: string, redactor: Redactor): string {
  return text
    .split('\n')
    .map(line => redactor.line(line))
    .join('\n')
}

function addressOf(uri: string): { key: string; id: string; kind: Kind; from: number } {
  const [, key, id, kind, from = '0'] =
    /^codemachine:\/\/session\/([\w.-]+)\/([\w.-]+)\/([a-z]+)(?:\?from=(\d{1,12}))?$/.exec(uri) ?? []
  if (key === undefined || id === undefined || kind === undefined || !(kind in KINDS)) throw unknown(uri)
  return { key, id, kind: kind as Kind, from: Number(from) }
}

function unknown(uri: string): UserError {
  return new UserError(
    'CM0810',
    `There is no resource ${clipEnd(uri, 300)}; resources/list lists those of the newest sessions.`,
  )
}
