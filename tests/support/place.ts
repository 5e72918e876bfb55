import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fillCodexHome, fillRepository } from './prepared.ts'

/** A throw-away machine: a home, a CODEX_HOME, codemachine's records and a git repository to work in. */
export interface TestPlace extends AsyncDisposable {
  root: string
  home: string
  codexHome: string
  directory: string
  /** The environment of every process of a test. */
  env: Record<string, string>
}

export interface PlaceOptions {
  /** False: the work directory is no repository, and empty. */
  git?: boolean
  /** Name of the work directory. */
  name?: string
  /** `new`: codex was never started there; left out: it was, if it is configured. */
  codexHome?: 'new'
}

/** The config.toml of a codex that asks no model: it looks for nothing on the network, which takes a fifth of the start of a gate. */
const QUIET_CODEX = `check_for_update_on_startup = false

[features]
plugins = false
apps = false
remote_plugin = false

[analytics]
enabled = false

[feedback]
enabled = false
`

/** Makes one; `config` is the text of codex's config.toml; empty: that of a codex that asks no model. */
export async function makePlace(config: string, options: PlaceOptions = {}): Promise<TestPlace> {
  const root = await mkdtemp(join(tmpdir(), 'codemachine-test-'))
  const [home, codexHome, directory] = [
    join(root, 'home'),
    join(root, 'codex-home'),
    join(root, options.name ?? 'work'),
  ]
  for (const folder of [home, codexHome, directory]) await mkdir(folder)
  if (options.codexHome !== 'new' && config !== '') fillCodexHome(codexHome)
  await writeFile(join(codexHome, 'config.toml'), config === '' ? QUIET_CODEX : config)
  const { CODEX_BIN: _bin, ...inherited } = process.env
  const env = {
    ...(inherited as Record<string, string>),
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    CODEX_HOME: codexHome,
    CODEMACHINE_HOME: join(home, '.codemachine'),
    NO_COLOR: '1',
  }
  const place: TestPlace = {
    root,
    home,
    codexHome,
    directory,
    env,
    // What was just ended may write for a moment still.
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }),
  }
  if (options.git !== false) fillRepository(directory)
  return place
}

/** Runs git as the person would, in the work directory; answers its output without the last newline. */
export function git(place: TestPlace, ...args: string[]): string {
  return execFileSync('git', args, { cwd: place.directory, env: place.env, stdio: 'pipe', encoding: 'utf8' }).trimEnd()
}

/** Puts a pipe in the place of a file of the work directory: who opens it waits for ever. */
export function pipe({ directory }: TestPlace, path: string): void {
  rmSync(join(directory, path), { force: true })
  execFileSync('mkfifo', [join(directory, path)])
}

/** Puts a pipe in the place of a loose object of the person's repository; answers the object's path. */
export function pipeAsObject(place: TestPlace, revision: string): string {
  const path = `.git/objects/${git(place, 'rev-parse', revision).replace(/^../, '$&/')}`
  pipe(place, path)
  return path
}
