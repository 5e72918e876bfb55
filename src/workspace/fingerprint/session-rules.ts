import { dirname, join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { gatesOfAll } from '../../core/state/scope.ts'
import type { SessionState } from '../../core/state/state.ts'
import { pathExists, writeWholeFile } from '../../platform/files.ts'
import { readRegularFile } from '../files/inside-directory.ts'
import { fromLatin1, runGit, toLatin1, withVariables } from '../git/git.ts'
import type { PrivateGit } from '../git/private-git.ts'
import type { Fingerprints, IgnoredNow } from './fingerprint.ts'
import { exceptionRules, literal } from './well-known.ts'

/** Inputs of a session's ignore rules. */
interface SessionLooksOptions {
  /** Path of the file with the rules: in the session's records, never in the work directory. */
  path: string
  /** Aborted when the session must end: then no rules are stored, and the resumed session starts with its own. */
  ending: AbortSignal
  state(): SessionState
  /** Called with each remark for a person, a sentence. */
  onRemark(remark: string): void
  /** Returns further remarks on a work directory without an ended round, after the first look. */
  remarksAtStart?(git: PrivateGit): Promise<readonly string[]>
}

/** Reads the work directory of a running session. */
interface SessionLooks {
  /**
   * Takes the fingerprint by the session's ignore rules; later words of a person may name more files. The first call stores
   * the rules. Throws `GitStopped` once the signal is aborted, a `UserError` if the records have been deleted.
   */
  take(signal?: AbortSignal): Promise<string>
}

/**
 * Makes fingerprints use the ignore rules of the session's start. Sessions of a version without stored rules, and new ones,
 * use the current rules.
 */
export function lookBySessionRules(fingerprints: Fingerprints, options: SessionLooksOptions): SessionLooks {
  const { path, ending, state } = options
  let named: readonly string[] | null = null
  return {
    async take(signal) {
      const now = textsThatName(state())
      if (named === null) {
        const signals = [ending, ...(signal === undefined ? [] : [signal])]
        await openRules(fingerprints, now, { ...options, signal: AbortSignal.any(signals) })
      } else {
        if (fingerprints.ignoredBy !== null && !(await pathExists(path))) throw recordsGone(path)
        const isSame = now.length === named.length && now.every((text, index) => text === named?.[index])
        if (!isSame) await nameInRules(fingerprints, path, now)
      }
      named = now
      return await fingerprints.take(signal)
    },
  }
}

async function openRules(
  fingerprints: Fingerprints,
  named: readonly string[],
  { path, state, onRemark, remarksAtStart, signal }: SessionLooksOptions & { signal: AbortSignal },
): Promise<void> {
  const { savepoint, last, running } = state()
  const isNew = savepoint === null && last === null && running === null
  const isToBeKept = isNew && !(await pathExists(path))
  const remarks = isToBeKept ? await keepIgnoreRules(fingerprints, path, named, signal) : []
  // There may be new gates, and new words of a person from just before an interrupt.
  if (!isToBeKept) await nameInRules(fingerprints, path, named)
  await followIgnoreRules(fingerprints, path)
  if (last === null && remarksAtStart !== undefined)
    remarks.push(...(await fingerprints.mending(remarksAtStart, signal)))
  for (const remark of remarks) onRemark(remark)
}

function recordsGone(path: string): UserError {
  return new UserError(
    'CM0610',
    `The records of the session are gone: ${dirname(path)} was deleted while it ran. Its work stays in the work directory.`,
    { hint: 'Start a new session there; this one cannot be resumed.', exitCode: 4 },
  )
}

/** Makes fingerprints use the stored rules of a session; without them, the current rules. */
export async function followIgnoreRules(fingerprints: Fingerprints, path: string): Promise<void> {
  const isKept = await pathExists(path)
  fingerprints.ignoreBy(isKept ? { path, ignoreAll: now => areRulesOfStart(fingerprints.git, path, now) } : null)
}

/** True if the current rules equal the stored ones of the session's start. */
async function areRulesOfStart(git: PrivateGit, path: string, now: IgnoredNow): Promise<boolean> {
  const kept = await readRegularFile(path, 2 * MOST_BYTES)
  if (kept.kind !== 'bytes') return false
  const { rules, isWhole } = await rulesNow(git, now)
  return isWhole && atStartIn(kept.bytes.toString('latin1')) === rules
}

/** Returns the rules of the start from the stored text. */
function atStartIn(kept: string): string {
  return kept.slice(kept.indexOf(MARK) + MARK.length)
}

/** Returns the texts that may name a file to include, even among dependencies, caches or build output. */
function textsThatName(state: SessionState): string[] {
  const goals = [state.goal, ...(state.scope === null ? [] : [state.scope.goal])]
  return [...gatesOfAll(state).flatMap(({ run, protect }) => [run, ...protect]), ...goals, ...state.personSaid]
}

async function keepIgnoreRules(
  fingerprints: Fingerprints,
  path: string,
  named: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  // This opens nested repositories; git lists none of their files before.
  const now = await fingerprints.lookByRulesOfNow(signal)
  const { rules, remarks, place } = await fingerprints.mending(async git => {
    const read = await rulesNow(git, now)
    return { ...read, place: await ruleThatHidesAll(git, read.rules, now.files) }
  }, signal)
  const atStart = place === null ? rules : ''
  await writeWholeFile(path, Buffer.from(sessionRules(fingerprints.git, named, atStart), 'latin1'))
  if (place === null) return remarks
  const remark = `${place} ignores everything in the work directory, so codemachine uses no ignore rules. It checks and saves all files except well-known dependencies, caches and build output. Remove that rule, or make it narrower.`
  return [...remarks, remark]
}

async function nameInRules({ git }: Fingerprints, path: string, named: readonly string[]): Promise<void> {
  const kept = await readRegularFile(path, 2 * MOST_BYTES)
  if (kept.kind !== 'bytes') return
  const before = kept.bytes.toString('latin1')
  const after = sessionRules(git, named, atStartIn(before))
  if (after !== before) await writeWholeFile(path, Buffer.from(after, 'latin1'))
}

/** Returns exclude rules relative to git's top, in latin1: the exceptions, then the stronger rules of the start. */
function sessionRules({ setting, prefix }: PrivateGit, named: readonly string[], atStart: string): string {
  const directory = join(setting.directory, prefix).replace(/\/$/, '')
  return `${exceptionRules(named, directory, prefix).map(toLatin1).join('\n')}\n${MARK}${atStart}`
}

/** Returns the current ignore rules as one text relative to git's top; later rules win. `isWhole`: no rules are missing. */
async function rulesNow(
  git: PrivateGit,
  now: IgnoredNow,
): Promise<{ rules: string; remarks: string[]; isWhole: boolean }> {
  // The private git directory has the person's excludes: their global file, then their repository's own.
  const person = await readRegularFile(join(git.gitDir, 'info', 'exclude'), 2 * MOST_BYTES)
  const texts = person.kind === 'bytes' ? [person.bytes.toString('latin1')] : []
  const found = ignoreFiles(git, now)
  // On some systems git also reads the name in other case.
  const paths = found.filter(path => path.endsWith(IGNORE_FILE)).slice(0, MOST_FILES)
  let isWhole = paths.length === found.length
  const remarks: string[] = []
  let room = MOST_BYTES
  for (const path of paths) {
    const name = fromLatin1(path)
    const read = await readRegularFile(join(git.setting.directory, name), room)
    isWhole &&= read.kind === 'bytes' || read.kind === 'gone'
    if (read.kind === 'bytes') {
      room -= read.bytes.length
      texts.push(rulesOf(read.bytes.toString('latin1'), path.slice(0, -IGNORE_FILE.length - 1)))
    } else if (read.kind === 'too-large') {
      remarks.push(
        `The ignore rules of ${name} are not used, because the file is too large (at most ${MOST_BYTES / 1024 / 1024} MiB of rules in total). Make it shorter.`,
      )
    }
  }
  const rules = texts.map(text => (text === '' || text.endsWith('\n') ? text : `${text}\n`)).join('')
  return { rules, remarks, isWhole }
}

/** Returns the effective `.gitignore` files in any case: latin1 paths relative to the top, outer ones first. */
function ignoreFiles({ prefix }: PrivateGit, { files, ignored }: IgnoredNow): string[] {
  const above = prefix.split('/').slice(0, -1)
  const outer = above.map((_, index) => [...above.slice(0, index), IGNORE_FILE].map(toLatin1).join('/'))
  // A `.gitignore` that ignores its own folder, as in caches, is itself ignored; git does not name one in a folder that
  // others ignore.
  const inside = [...files, ...ignored].filter(path => /(?:^|\/)\.gitignore$/i.test(path))
  const byDepth = inside.sort().sort((a, b) => a.split('/').length - b.split('/').length)
  return [...new Set([...outer, ...byDepth])]
}

/** Returns the rules of a `.gitignore` in this folder, relative to the top. Latin1, as git reads them. */
function rulesOf(text: string, folder: string): string {
  const lines = text.replace(/^\xef\xbb\xbf/, '').split(/\r?\n/)
  if (folder === '') return lines.join('\n')
  if (/[\n\r]/.test(folder)) return ''
  const at = `/${literal(folder)}`
  const rules = lines.flatMap(line => {
    if (line.trim() === '' || line.startsWith('#')) return []
    const [negation, rule] = line.startsWith('!') ? ['!', line.slice(1)] : ['', line]
    // A slash at the start or in the middle binds a rule to its folder.
    const isTied = rule.trimEnd().replace(/\/$/, '').includes('/')
    return [`${negation}${at}/${isTied ? rule.replace(/^\//, '') : `**/${rule}`}`]
  })
  return rules.join('\n')
}

/** Returns place and text of a rule that hides everything in the work directory, now and later; null: none. */
async function ruleThatHidesAll(
  { setting, prefix }: PrivateGit,
  rules: string,
  files: readonly string[],
): Promise<string | null> {
  const isException = (line: string) => line.startsWith('!') && !OF_GIT.test(line)
  if (rules.split('\n').some(isException)) return null
  if (files.some(path => !OF_GIT.test(path))) return null
  // `check-ignore` refuses literal pathspecs, and reads none from stdin.
  const plain = withVariables(setting, { GIT_LITERAL_PATHSPECS: '0' })
  const probes = ['codemachine-probe', 'codemachine-probe.d/x'].map(name => `${toLatin1(prefix)}${name}\0`).join('')
  const asked = await runGit(plain, ['check-ignore', '--no-index', '-v', '-z', '--stdin'], probes)
  const fields = asked.stdout.split('\0')
  if (fields.length < 9) return null
  const [source = '', line = '', rule = ''] = fields
  return `${fromLatin1(source)}:${line} (${fromLatin1(rule)})`
}

/** Matches names of files that only serve git. */
const OF_GIT = /(?:^|[/!])\.git(?:ignore|keep|attributes)$/
const IGNORE_FILE = '.gitignore'
const MARK = '# What was ignored when the session began:\n'
const MOST_FILES = 2000
const MOST_BYTES = 4 * 1024 * 1024
