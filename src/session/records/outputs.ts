import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { clipEnd } from '../../base/text.ts'
import type { Output, OutputKind } from '../../core/rules/outputs.ts'
import { readBoundedText, sha256Of, writeWholeFile } from '../../platform/files.ts'

/** The outputs of one session, in the folder `outputs` of its records. */
export interface Outputs {
  /** Writes one atomically, mode 0600, and replaces one with this number and name. Keeps the first 1,048,576 characters. */
  keep(output: { n: number; name: string; kind: OutputKind; text: string }): Promise<Output>
  /** Returns the whole text of one. If the file is missing, unreadable or changed: its beginning with a note. */
  read(output: Output): Promise<string>
  /** As `read`; null if the file is missing, unreadable or changed. */
  whole(output: Output): Promise<string | null>
}

const MOST_CHARACTERS = 1024 * 1024
/** Longest file, in bytes: at most three per character, and some for the note on the cut. */
const MOST_BYTES = 3 * MOST_CHARACTERS + 100
const HEAD_CHARACTERS = 400
/** Fewest outputs to keep; older ones are removed a hundred at a time. */
const MOST_FILES = 20_000
const DROP_EVERY = 100
const NAME_CHARACTERS = 40

/** Opens the outputs in a session's folder of the records. Creates the folder with the first output. */
export function openOutputs(sessionFolder: string): Outputs {
  const folder = join(sessionFolder, 'outputs')
  const whole = async ({ file, sha256 }: Output) => {
    const read = await readBoundedText(join(folder, file), MOST_BYTES)
    const text = typeof read === 'object' && 'text' in read ? read.text : null
    return text !== null && sha256Of(text) === sha256 ? text : null
  }
  return {
    whole,
    async keep({ n, name, kind, text }) {
      const content = Buffer.from(clipEnd(text.toWellFormed(), MOST_CHARACTERS))
      const file = `${n}-${safeName(name)}.${kind}`
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await writeWholeFile(join(folder, file), content)
      if (n > MOST_FILES && n % DROP_EVERY === 0) await dropUpTo(folder, n - MOST_FILES)
      const head = text.slice(0, HEAD_CHARACTERS).toWellFormed()
      return { n, name, file, bytes: content.length, sha256: sha256Of(content), head }
    },
    read: async output => (await whole(output)) ?? `${output.head}\n${GONE}`,
  }
}

/** Note after the beginning of an output whose rest cannot be read. */
const GONE = '[… the rest of it is not kept any more]'

/** Removes the outputs with numbers up to this one. */
async function dropUpTo(folder: string, n: number): Promise<void> {
  const old = (await readdir(folder)).filter(name => Number.parseInt(name, 10) <= n)
  for (const name of old) await rm(join(folder, name), { force: true })
}

/** Returns the part of a name that is a valid file name on every system; `output` if empty. */
function safeName(name: string): string {
  const safe = name.replace(/[^\w-]+/g, '-').replace(/^-+|-+$/g, '')
  return safe.slice(0, NAME_CHARACTERS) || 'output'
}
