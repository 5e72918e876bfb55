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

/** Place and sandbox in which commands start. */
export interface SandboxPlace {
  directory: string
  /** Sandbox with the person's own folders. */
  sandbox: SandboxChoice
  platform: NodeJS.Platform
}

/** Sends `command/exec`; throws a `RequestFailure`. */
type Execute = (params: CommandExecParams) => Promise<unknown>

/**
 * Starts a shell that does nothing in the sandbox of the rounds, in the work directory. Retries once, because a command that
 * starts at the same time may be the cause. Null: it started, or codex does not say.
 */
export async function trySandbox(execute: Execute, place: SandboxPlace): Promise<SandboxProblem | null> {
  for (const isLast of [false, true]) {
    const said = await tryOnce(execute, place)
    if (said === null) return null
    if (isLast) return await describeProblem(said, place)
  }
  return null
}

/** Returns codex's reason why nothing started; null: something did. */
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

/** Timeout of the command, ms: the machine may be busy. */
const COMMAND_MS = 10_000
const NOTHING = "Codex's sandbox starts no command here"
/** Codex's exit code for a command that timed out. */
const TIMED_OUT = 124
const WORDS = 500

function wordsOf(stderr: string): string | null {
  const [first = ''] = stripVTControlCharacters(stderr)
    .split('\n')
    .filter(line => line.trim() !== '')
  return first === '' ? null : clipEnd(first.trim(), WORDS)
}

/** Describes the obstacle from the files: codex names the path, but no fix. @param words codex's own */
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
  return { problem: `${NOTHING} (${directory}): ${said}`, mend: mendOfSandbox(platform, said) }
}

/**
 * Tracks if any action of an agent succeeded. Codex does not report commands that the sandbox stops at once
 * (docs/inside/codex.md). The only sign is a turn with more than one request to its model.
 */
export class Attempts {
  #hasWorked = false
  #requests = 0

  /** @param saysRequests whether codex tells the usage of each request, and not of the turn alone */
  constructor({ saysRequests }: { saysRequests: boolean }) {
    if (!saysRequests) this.#requests = MOST_WITHOUT
  }

  /** Notes a message about the agent's thread. */
  note(message: ServerNotification): void {
    if (message.method === 'thread/tokenUsage/updated') this.#requests++
    if (message.method !== 'item/completed') return
    const { item } = message.params
    if (item.type === 'fileChange') this.#hasWorked ||= item.status === 'completed'
    if (item.type === 'commandExecution') this.#hasWorked ||= item.exitCode === 0
  }

  /** True if no action succeeded although some may have been tried, so that the sandbox may be the cause. */
  get areInVain(): boolean {
    return !this.#hasWorked && this.#requests >= MOST_WITHOUT
  }
}

/** Requests of a turn; one with fewer has called no tool. */
const MOST_WITHOUT = 2

/** Returns the outcome of a round that worked; `config` if its sandbox could start nothing. */
export function withoutSandbox(found: SandboxProblem | null, worked: RoundOutcome): RoundOutcome {
  return found === null ? worked : { class: 'config', message: `${found.problem} ${found.mend}` }
}

/** Returns a sentence on the fix if a sandbox cannot be created at all. @param said codex's words */
export function mendOfSandbox(platform: NodeJS.Platform, said: string): string {
  const inContainer = 'if the container or machine itself is a sandbox, use --sandbox danger-full-access.'
  if (platform !== 'linux') return `See codex's documentation of its sandbox for this system; ${inContainer}`
  // For bubblewrap below 0.9, codex puts its helper into its own folder: not into a missing one, nor below a temporary one.
  if (said.includes('execvp codex-linux-sandbox'))
    return 'Log in, so that codex has a folder of its own outside of temporary folders; or update bubblewrap to 0.9 or newer.'
  return `Install bubblewrap and let users create user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu); ${inContainer}`
}

/** Returns the link in one of these folders that codex names; null: none. */
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
  // Git reads such a file in the same way as the link.
  if (link === join(directory, '.git'))
    return `Replace the link by a file: \`rm ${link} && echo "gitdir: ${target}" > ${link}\`.`
  return `Remove it, or replace it by its target (${target}).`
}

/** Returns a folder of another user that codex may not write; null: that is not the cause. */
async function foreignNamedIn(
  said: string,
  folders: readonly string[],
): Promise<{ folder: string; owner: number; self: number } | null> {
  if (!/permission denied|not permitted/i.test(said)) return null
  // Owner of this process; a system without /proc has no bubblewrap either.
  const self = (await stat('/proc/self').catch(() => null))?.uid
  if (self === undefined) return null
  for (const folder of folders.filter(each => said.includes(each))) {
    const owner = (await stat(folder).catch(() => null))?.uid
    if (owner !== undefined && owner !== self) return { folder, owner, self }
  }
  return null
}
