import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { git, type TestPlace } from './place.ts'

/** One call of a scripted `gh` or `glab`. */
interface ForgeCall {
  program: string
  args: string[]
  input: string
}

/** A request of the host. */
export interface ForgeRequest {
  number: number
  branch: string
  main: string
  title: string
  body: string
  isDraft: boolean
  isFork?: boolean
}

/** What the host has: read and written by the scripted programs. */
export interface ForgeState {
  /** What `auth status` says of the host. */
  isLoggedIn: boolean
  requests: ForgeRequest[]
  issue: unknown
  /** What a program does in place of a command: prints it, or hangs. */
  instead: Partial<
    Record<string, { stdout?: string; megabytes?: number; stderr?: string; exitCode?: number; hangs?: true }>
  >
}

const PROGRAM = join(import.meta.dirname, 'forge-program.ts')

/** A host with the remote `origin` of a work directory, a bare repository that ssh leads to, and one of the programs on the PATH. */
export interface ScriptedForge extends AsyncDisposable {
  env: Record<string, string>
  bare: string
  calls(): Promise<ForgeCall[]>
  state(): Promise<ForgeState>
  change(state: Partial<ForgeState>): Promise<void>
  /** Runs git in the bare repository. */
  git(...args: string[]): string
}

/**
 * Makes one. The programs know the flags that gh 2.23 and glab 1.53 were seen to take, and refuse others, questions and a
 * terminal; `glab mr create` does nothing outside of a repository, as the real one.
 */
export async function openForgeScene(place: TestPlace, name: 'gh' | 'glab' | null): Promise<ScriptedForge> {
  // Not below /tmp: where agents can write no program is taken from.
  const folder = await mkdtemp('/var/tmp/codemachine-forge-')
  const [bin, bare] = [join(folder, 'bin'), join(folder, 'acme', 'shop.git')]
  await mkdir(bin)
  await mkdir(join(folder, 'acme'))
  execFileSync('git', ['clone', '-q', '--bare', place.directory, bare], { env: place.env, stdio: 'pipe' })
  git(place, 'remote', 'add', 'origin', 'git@forge.test:acme/shop.git')
  const state = (): Promise<ForgeState> => readFile(join(folder, 'state'), 'utf8').then(JSON.parse)
  const write = (to: ForgeState) => writeFile(join(folder, 'state'), JSON.stringify(to))
  await write({ isLoggedIn: true, requests: [], issue: null, instead: {} })
  await writeFile(join(folder, 'calls'), '')
  const ssh = join(folder, 'ssh')
  await writeFile(ssh, `#!/bin/sh\nfor last; do :; done\ncd '${folder}'\nexec sh -c "$last"\n`, { mode: 0o755 })
  if (name !== null) {
    const script = `#!/bin/sh\nexec '${execPath}' '${PROGRAM}' '${folder}' ${name} "$@"\n`
    await writeFile(join(bin, name), script, { mode: 0o755 })
  }
  const PATH = `${bin}:${place.env.PATH}`
  return {
    env: { PATH, GIT_SSH_COMMAND: ssh, GIT_SSH_VARIANT: 'simple' },
    bare,
    calls: async () =>
      (await readFile(join(folder, 'calls'), 'utf8'))
        .split('\n')
        .filter(line => line !== '')
        .map(line => JSON.parse(line)),
    state,
    change: async to => await write({ ...(await state()), ...to }),
    git: (...args) =>
      execFileSync('git', args, { cwd: bare, env: place.env, stdio: 'pipe', encoding: 'utf8' }).trimEnd(),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
