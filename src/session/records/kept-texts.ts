import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import type { KeptText } from '../../core/events/events.ts'
import type { TemplateSetup } from '../../core/template.ts'
import { readBoundedText, sha256Of, writeWholeFile } from '../../platform/files.ts'

/** A text at the session's start that it keeps unchanged, whatever happens to its source file. */
export interface NewText {
  /** File name of ASCII letters, digits, `.`, `-` and `_`, at most 100; unique in a session, ignoring case. */
  name: string
  text: string
}

/** The texts that one session keeps, in the folder `kept` of its records, where no agent can write. */
interface KeptTexts {
  /** Writes the texts, mode 0600. */
  keep(texts: readonly NewText[]): Promise<readonly KeptText[]>
  /** Returns the text of this name. Throws a `UserError` with the file if it is missing or changed. */
  read(name: string, kept: readonly KeptText[]): Promise<string>
  /** Returns these texts as a template gets them. */
  of(kept: readonly KeptText[]): TemplateSetup['kept']
}

const MOST_BYTES = 16 * 1024 * 1024
const NAME = /^\w[\w.-]{0,99}$/

/** Opens the texts in a session's folder of the records. Creates the folder with the first text. */
export function openKeptTexts(sessionFolder: string): KeptTexts {
  const folder = join(sessionFolder, 'kept')
  const texts: KeptTexts = {
    async keep(wanted) {
      if (wanted.length > 0) await mkdir(folder, { recursive: true, mode: 0o700 })
      const kept: KeptText[] = []
      for (const { name, text } of wanted) {
        const content = bytesOf(text)
        await writeWholeFile(join(folder, name), content)
        kept.push({ name, bytes: content.length, sha256: sha256Of(content) })
      }
      return kept
    },
    async read(name, kept) {
      const path = join(folder, name)
      const known = kept.find(each => each.name === name)
      if (known === undefined) throw new UserError('CM0611', `The session has no stored text named ${path}.`)
      const read = await readBoundedText(path, MOST_BYTES)
      if (read === 'missing') throw new UserError('CM0611', `${path}, which the session needs, was deleted; ${MEND}`)
      if ('problem' in read) throw new UserError('CM0611', `${path} ${read.problem}; ${MEND}`)
      if (sha256Of(bytesOf(read.text)) !== known.sha256)
        throw new UserError('CM0611', `${path} was changed since the session began; ${MEND}`)
      return read.text
    },
    of: kept => ({
      read: name => texts.read(name, kept),
      has: name => kept.some(each => each.name === name),
      path: name => join(folder, name),
    }),
  }
  return texts
}

const MEND = 'restore it, or begin a new session.'

/** Checks the texts before there is a session. Throws a `UserError` for one that is too long or contains a secret. */
export function refuseTexts(texts: readonly NewText[], redact: (text: string) => string): void {
  const names = new Set<string>()
  for (const { name, text } of texts) {
    const folded = name.toLowerCase()
    if (!NAME.test(name) || names.has(folded)) throw new Error(`A text cannot be stored under the name "${name}".`)
    names.add(folded)
    const bytes = bytesOf(text).length
    const mib = Math.ceil(bytes / 1024 / 1024)
    if (bytes > MOST_BYTES)
      throw new UserError(
        'CM0107',
        `${name} has ${mib} MiB, but at most ${MOST_BYTES / 1024 / 1024} MiB are allowed; use a shorter text.`,
      )
    const shown = redact(text)
    if (shown === text) continue
    const secret = /\[secret [^\]]*\]/.exec(shown)?.[0] ?? 'a secret'
    throw new UserError(
      'CM0904',
      `${name} contains ${secret}, which codemachine never stores; write the name of a variable instead.`,
    )
  }
}

/** Encodes a text without a byte order mark, which a read would drop. */
function bytesOf(text: string): Buffer {
  return Buffer.from(text.toWellFormed().replace(/^\uFEFF+/, ''))
}
