import { lstat, readdir, readlink, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { CommandExecParams, ServerNotification } from '../../../../protocol/codex.ts'
import { messageOf } from '../../../base/errors.ts'
import { clipEnd } from '../../../base/text.ts'
import type { SandboxProblem } from '../../../core/engine.ts'
import type { RoundOutcome } from '../../../core/events/outcome.ts'
import type { SandboxChoice } from '../../../core/shapes/sandbox.ts'
import { besidesDirectory, commandPolicy } from '../sandbox.ts'
import { memberOf, RequestFailure, stringMember } from '../wire.ts'

/** Where commands are to be started, and how. */
export interface SandboxPlace {
  directory: string
  /** With the person's own folders in it. */
  sandbox: SandboxChoice
  platform: NodeJS.Platform
}

/** Sends `command/exec`; throws a `RequestFailure`. */
type Execute = (params: CommandExecParams) => Promise<unknown>

/**
 * Starts a shell that does nothing in the sandbox of the rounds, in the work directory itself; once more if that fails, for
 * another command that starts in the same moment may be why. Null: it was started, or codex does not say.
 */
export async function trySandbox(execute: Execute, place: SandboxPlace): Promise<SandboxProblem | null> {
  for (const isLast of [false, true]) {
    const said = await tryOnce(execute, place)
    if (said === null) return null
    if (isLast) return await describeProblem(said, place)
  }
  return null
}

/** Codex's words of why nothing was started; null if something was. */
async function tryOnce(execute: Execute, { directory, sandbox, platform }: SandboxPlace): Promise<string | null> {
  const command = platform === 'win32' ? ['cmd.exe', '/d', '/c', 'exit 0'] : ['/bin/sh', '-c', ':']
  try {
    const answer = await execute({
      command,
      cwd: directory,
      sandboxPolicy: commandPolicy(sandbox, true),
      timeoutMs: COMMAND_MS,
    })
    const exitCode = memberOf(answer, 'exitCode')
    if (exitCode === 0 || exitCode === TIMED_OUT) return null
    return stringMember(answer, 'stderr') || `it ended with exit code ${exitCode}`
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error
    return error.cause === 'answered' ? messageOf(error) : null
  }
}

/** What codex gives it, ms: the machine may be busy. */
const COMMAND_MS = 10_000
const NOTHING = "Codex's sandbox starts no command here"
/** Codex's exit code of a command that has used up its time. */
const TIMED_OUT = 124
const WORDS = 500

function wordsOf(stderr: string): string | null {
  const [first = ''] = stripVTControlCharacters(stderr)
    .split('\n')
    .filter(line => line.trim() !== '')
  return first === '' ? null : clipEnd(first.trim(), WORDS)
}

/** What stands in the way, by what is there: codex names the path, and not what to do. @param words codex's own */
export async function describeProblem(
  words: string,
  { directory, sandbox, platform }: SandboxPlace,
): Promise<SandboxProblem> {
  const said = wordsOf(words) ?? 'codex gave no reason'
  const folders = [directory, ...besidesDirectory(sandbox)]
  const link = await linkNamedIn(said, folders)
  if (link !== null) {
    const problem = `${NOTHING}: ${basename(link)} in ${dirname(link)} is a link, which it cannot protect.`
    return { problem, mend: await mendOfLink(link, directory) }
  }
  const foreign = await foreignNamedIn(said, folders)
  if (foreign !== null) {
    const { folder, owner, self } = foreign
    return {
      problem: `${NOTHING}: ${folder} belongs to another user (id ${owner}, and this one is ${self}). ${said}`,
      mend: `Run codemachine as that user, or give the files to this one with \`chown -R ${self} ${folder}\`.`,
    }
  }
  return { problem: `${NOTHING} (${directory}): ${said}`, mend: mendOfSandbox(platform) }
}

/**
 * Whether anything that an agent wanted was done. Of a command that the sandbox stops at once codex tells nothing (docs/inside/codex.md):
 * then what there is to see is a turn that has asked its model more than once.
 */
export class Attempts {
  #hasWorked = false
  #requests = 0

  /** @param saysRequests whether codex tells the usage of each request, and not of the turn alone */
  constructor({ saysRequests }: { saysRequests: boolean }) {
    if (!saysRequests) this.#requests = MOST_WITHOUT
  }

  /** Takes note of what codex tells of the agent's thread. */
  note(message: ServerNotification): void {
    if (message.method === 'thread/tokenUsage/updated') this.#requests++
    if (message.method !== 'item/completed') return
    const { item } = message.params
    if (item.type === 'fileChange') this.#hasWorked ||= item.status === 'completed'
    if (item.type === 'commandExecution') this.#hasWorked ||= item.exitCode === 0
  }

  /** Whether nothing was, though it may have been wanted, so that the sandbox may be why. */
  get areInVain(): boolean {
    return !this.#hasWorked && this.#requests >= MOST_WITHOUT
  }
}

/** A turn with fewer requests has called no tool. */
const MOST_WITHOUT = 2

/** The outcome of a round that worked, but for a sandbox in which nothing could be started. */
export function withoutSandbox(found: SandboxProblem | null, worked: RoundOutcome): RoundOutcome {
  return found === null ? worked : { class: 'config', message: `${found.problem} ${found.mend}` }
}

/** What to do where a sandbox cannot be made at all, a sentence. */
export function mendOfSandbox(platform: NodeJS.Platform): string {
  const inContainer = 'if the container or machine itself is a sandbox, use --sandbox danger-full-access.'
  if (platform !== 'linux') return `See codex's documentation of its sandbox for this system; ${inContainer}`
  return `Install bubblewrap and let users create user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu); ${inContainer}`
}

/** The link in one of these folders that codex speaks of; null if it speaks of none. */
async function linkNamedIn(said: string, folders: readonly string[]): Promise<string | null> {
  for (const folder of folders.filter(each => said.includes(each) || said.includes(dirname(each)))) {
    if (said.includes(folder) && (await lstat(folder).catch(() => null))?.isSymbolicLink()) return folder
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
    const found = entries.find(each => each.isSymbolicLink() && said.includes(`${join(folder, each.name)}`))
    if (found !== undefined) return join(folder, found.name)
  }
  return null
}

async function mendOfLink(link: string, directory: string): Promise<string> {
  const target = resolve(dirname(link), await readlink(link).catch(() => ''))
  // Git reads such a file as it reads the link.
  if (link === join(directory, '.git'))
    return `Replace the link by a file: \`rm ${link} && echo "gitdir: ${target}" > ${link}\`.`
  return `Remove it, or replace it by its target (${target}).`
}

/** The folder that codex may not write to and that is another user's; null if that is not why. */
async function foreignNamedIn(
  said: string,
  folders: readonly string[],
): Promise<{ folder: string; owner: number; self: number } | null> {
  if (!/permission denied|not permitted/i.test(said)) return null
  // Whose this process is; where the system does not say it so, there is no bubblewrap either.
  const self = (await stat('/proc/self').catch(() => null))?.uid
  if (self === undefined) return null
  for (const folder of folders.filter(each => said.includes(each))) {
    const owner = (await stat(folder).catch(() => null))?.uid
    if (owner !== undefined && owner !== self) return { folder, owner, self }
  }
  return null
}
