import { join } from 'node:path'
import type * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import type { ExternalEngine } from '../../core/shapes/external-engine.ts'
import { OWN_ENGINES } from '../../engines/registry.ts'
import type { engineSchema } from './schema.ts'
import type { SettingsFile } from './settings-file.ts'

/** An engine that needs no table: its program, and the variables that put all its files into one folder. */
interface Preset {
  command: readonly [string, ...string[]]
  /** The variables, with their paths in its own folder. */
  folders: Readonly<Record<string, string>>
  /** Its configuration in a project, relative to the work directory: these files may name programs to run. */
  configuration: readonly string[]
  /** As in `ExternalEngine`: hosts for work and for renewing its login. */
  network: ExternalEngine['network']
  /** Variables with the URL of its model's server, whose host it reaches too. */
  servers: readonly string[]
  /** As in `ExternalEngine`. */
  modes: readonly string[]
  boxEnv?: Readonly<Record<string, string>>
  /** Install command for the person. */
  install: string
  /** Login command for the person, with these variables. */
  login: string
}

/** Measured with claude-agent-acp 0.101, gemini-cli 0.61, opencode 1.18 and codex-acp 2.6. */
export const PRESETS: Readonly<Record<string, Preset>> = {
  claude: {
    command: ['claude-agent-acp'],
    folders: { CLAUDE_CONFIG_DIR: '' },
    configuration: ['.claude', '.mcp.json'],
    network: ['api.anthropic.com', 'platform.claude.com'],
    servers: ['ANTHROPIC_BASE_URL'],
    modes: ['bypassPermissions', 'acceptEdits', 'default'],
    // Without the first, it bypasses nothing as root; without the second, the model does not see codemachine's tools.
    boxEnv: { IS_SANDBOX: '1', ENABLE_TOOL_SEARCH: 'false' },
    install: 'npm install --global @agentclientprotocol/claude-agent-acp',
    login: 'claude /login',
  },
  gemini: {
    command: ['gemini', '--acp'],
    folders: { GEMINI_CLI_HOME: '' },
    configuration: ['.gemini'],
    network: ['generativelanguage.googleapis.com', 'cloudcode-pa.googleapis.com', 'oauth2.googleapis.com'],
    servers: ['GOOGLE_GEMINI_BASE_URL'],
    modes: ['yolo'],
    install: 'npm install --global @google/gemini-cli',
    login: 'gemini',
  },
  opencode: {
    command: ['opencode', 'acp'],
    folders: {
      XDG_DATA_HOME: 'data',
      XDG_CONFIG_HOME: 'config',
      XDG_STATE_HOME: 'state',
      XDG_CACHE_HOME: 'cache',
    },
    // At its start it writes into .opencode, and fails if it cannot. In its sandbox it reads no configuration there.
    configuration: [],
    boxEnv: { OPENCODE_DISABLE_PROJECT_CONFIG: '1' },
    // The person chooses the maker of its models.
    network: true,
    servers: [],
    modes: [],
    install: 'npm install --global opencode-ai',
    login: 'opencode auth login',
  },
  'codex-acp': {
    command: ['codex-acp'],
    folders: { CODEX_HOME: '' },
    configuration: ['.codex'],
    network: ['api.openai.com', 'chatgpt.com', 'auth.openai.com'],
    servers: ['OPENAI_BASE_URL'],
    modes: ['agent-full-access', 'full-access'],
    install: 'npm install --global @agentclientprotocol/codex-acp',
    login: 'codex login',
  },
}

/** Another maker's engine in the settings. `home`: as written; null: a folder of codemachine. */
export interface NamedEngine
  extends Pick<ExternalEngine, 'name' | 'command' | 'env' | 'boxEnv' | 'modes' | 'configuration' | 'network'> {
  home: readonly string[] | null
  /** As in `Preset`; empty if the person names the hosts. */
  servers: readonly string[]
}

/** Engines of the settings, by name. */
export type NamedEngines = ReadonlyMap<string, NamedEngine>

/**
 * Returns the engines of the person's file, and the built-in ones. Throws a `UserError` of one sentence, with the place, for
 * the first mistake.
 */
export function effectiveEngines({ value, placeOf }: SettingsFile): NamedEngines {
  const names = new Set([...Object.keys(PRESETS), ...Object.keys(value.engines ?? {})])
  return new Map([...names].map(name => [name, namedEngine(name, value.engines?.[name], placeOf('engines', name))]))
}

function namedEngine(
  name: string,
  written: v.InferOutput<typeof engineSchema> | undefined,
  place: string,
): NamedEngine {
  if (OWN_ENGINES.has(name))
    throw new UserError('CM0312', `${place}: the engine ${name} is codemachine's own; choose another name.`)
  const command = written?.command ?? PRESETS[name]?.command
  if (command === undefined)
    throw new UserError(
      'CM0312',
      `${place}: the engine ${name} has no command; name its program, such as command = ["claude-agent-acp"].`,
    )
  return {
    name,
    command,
    home: written?.home ?? null,
    env: written?.env ?? {},
    configuration: written?.configuration ?? PRESETS[name]?.configuration ?? [],
    boxEnv: PRESETS[name]?.boxEnv ?? {},
    modes: written?.modes ?? PRESETS[name]?.modes ?? [],
    network: networkOf(written?.network ?? PRESETS[name]?.network ?? true),
    servers: written?.network === undefined ? (PRESETS[name]?.servers ?? []) : [],
  }
}

/**
 * Returns the engine as it runs: with its own folder in the records, unless the person names another. Its login is separate
 * from the person's own.
 * @param places `root`: where codemachine keeps its records; `env`: the variables that it inherits
 */
export function externalEngine(
  { home, env, servers, ...others }: NamedEngine,
  places: { home: string; root: string; env: NodeJS.ProcessEnv },
): ExternalEngine {
  const { network } = others
  const named = {
    ...others,
    network: network === true ? network : [...network, ...hostsOf(servers, { ...places.env, ...env })],
  }
  if (home !== null)
    return { ...named, env, home: home.map(path => (path.startsWith('~') ? join(places.home, path.slice(1)) : path)) }
  const own = join(places.root, 'engines', named.name)
  const folders = Object.entries(PRESETS[named.name]?.folders ?? {}).map(([variable, below]) => [
    variable,
    join(own, below),
  ])
  return { ...named, home: [own], env: { ...Object.fromEntries(folders), ...env } }
}

/** No host is an empty list. */
function networkOf(written: boolean | readonly string[]): ExternalEngine['network'] {
  return written === false ? [] : written
}

/** Returns the hosts of the URLs in these variables. */
function hostsOf(variables: readonly string[], env: NodeJS.ProcessEnv): string[] {
  return variables.flatMap(variable => {
    const url = env[variable]
    return url !== undefined && URL.canParse(url) ? [new URL(url).hostname] : []
  })
}
