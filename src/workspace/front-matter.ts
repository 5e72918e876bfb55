import matter from 'gray-matter'
import { messageOf } from '../base/errors.ts'
import type { Parsed } from './memory.ts'

/** The YAML block at the top of a Markdown file. */
interface FrontMatter {
  data: Readonly<Record<string, unknown>>
  /** Offsets into the text of the lines between the two `---`. */
  start: number
  end: number
  body: string
}

const maxLength = 16 * 1024

/** Reads the front matter of a text that an agent wrote: YAML only, bounded, without aliases; never evaluates it. */
export function readFrontMatter(text: string): Parsed<FrontMatter> {
  const opening = /^\uFEFF?---[ \t]*\r?\n/.exec(text)
  if (opening === null) return { ok: false, problem: missingOpening(text) }
  const start = opening[0].length
  const close = text.slice(0, start + maxLength + 4).indexOf('\n---', start - 1)
  if (close === -1) return { ok: false, problem: missingClose(text.length - start) }
  const closing = /^\n---[ \t]*(?:\r?\n|$)/.exec(text.slice(close, close + 200))
  if (closing === null) {
    return {
      ok: false,
      problem: `line ${lineOf(text, close + 1)} has more than ---; close the front matter with --- alone.`,
    }
  }
  const end = Math.max(start, close + 1)
  const data = parseYaml(text.slice(start, end))
  return data.ok
    ? { ok: true, value: { data: data.value, start, end, body: text.slice(close + closing[0].length) } }
    : data
}

function missingOpening(text: string): string {
  if (text.trim() === '') return 'it is empty; begin with a front matter between two lines of ---.'
  const language = /^\uFEFF?---([^\r\n]{1,20})/.exec(text)?.[1]
  if (language === undefined) return 'it has no front matter; begin with a line ---, the keys, and a line ---.'
  return `line 1 is ${JSON.stringify(`---${language}`)}; begin with --- alone, as the front matter is read as YAML only.`
}

function missingClose(length: number): string {
  if (length > maxLength) return 'its front matter is longer than 16 KiB; keep it to a few keys and close it with ---.'
  return 'its front matter is not closed; put a line --- after the keys.'
}

function parseYaml(yaml: string): Parsed<Record<string, unknown>> {
  try {
    const { data }: { data: unknown } = matter(`---\n${yaml}\n---\n`, options())
    if (!isRecord(data))
      return { ok: false, problem: 'its front matter is not a list of keys; write lines such as status: in-progress.' }
    if (hasSharedParts(data))
      return { ok: false, problem: 'its front matter uses YAML aliases; write every value out.' }
    return { ok: true, value: data }
  } catch (error) {
    return { ok: false, problem: `${yamlProblem(error)}; write the front matter as lines of key: value.` }
  }
}

// Options at every call: without them gray-matter evaluates `---js`, and shares a cache in which a broken file becomes {}.
function options() {
  const refuse = (): never => {
    throw new Error('the front matter is not YAML')
  }
  const engines = { javascript: refuse, js: refuse, json: refuse, coffee: refuse, coffeescript: refuse, cson: refuse }
  return { language: 'yaml', engines }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

/** A few aliases of aliases make a small text a tree too large to walk, so that a part may have one place only. */
function hasSharedParts(root: object): boolean {
  const seen = new Set<unknown>([root])
  for (const part of seen) {
    if (part === null || typeof part !== 'object') continue
    for (const child of Object.values(part)) {
      if (child === null || typeof child !== 'object') continue
      if (seen.has(child)) return true
      seen.add(child)
    }
  }
  return false
}

function yamlProblem(error: unknown): string {
  if (!(error instanceof Error) || !('reason' in error) || !('mark' in error)) return messageOf(error)
  const { reason, mark } = error
  if (!isRecord(mark)) return messageOf(error)
  return `line ${Number(mark.line) + 1}, column ${Number(mark.column) + 1}: ${String(reason).slice(0, 120)}`
}

function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}
