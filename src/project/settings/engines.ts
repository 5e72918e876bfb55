import { join } from 'node:path'
import type * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import type { ExternalEngine } from '../../core/shapes/external-engine.ts'
import { OWN_ENGINES } from '../../engines/registry.ts'
import type { engineSchema } from './schema.ts'
import type { SettingsFile } from './settings-file.ts'

/** An engine that is known without a table: its program, and the variables by which it keeps all that it has in one folder. */
interface Preset {
  command: readonly [string, ...string[]]
  /** The variables, by what they are below its own folder. */
  folders: Readonly<Record<string, string>>
  /** Where a project's own file configures it, relative to the work directory: these may name programs to run. */
  configuration: readonly string[]
  /** As of `ExternalEngine`: what it needs to work and to renew its login. */
  network: ExternalEngine['network']
  /** Variables that name the server of its model, by a URL whose host it reaches too. */
  servers: readonly string[]
  /** As of `ExternalEngine`. */
  modes: readonly string[]
  boxEnv?: Readonly<Record<string, string>>
  /** How a person installs it, a command. */
  install: string
  /** What a person runs, with these variables, to log in. */
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
    // As root it bypasses nothing without the first; without the second the model does not see codemachine's tools.
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
    // It writes into .opencode as it starts, and does not start where it cannot: it reads no configuration there in its box.
    configuration: [],
    boxEnv: { OPENCODE_DISABLE_PROJECT_CONFIG: '1' },
    // Its models are of whoever the person chose.
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

/** An engine of another maker as the settings name it. `home`: as written; null: a folder of codemachine's. */
export interface NamedEngine
  extends Pick<ExternalEngine, 'name' | 'command' | 'env' | 'boxEnv' | 'modes' | 'configuration' | 'network'> {
  home: readonly string[] | null
  /** As of `Preset`; none where the person names the hosts. */
  servers: readonly string[]
}

/** Those of the settings, by name. */
export type NamedEngines = ReadonlyMap<string, NamedEngine>

/** The engines of the person's file, and those that are known without. Throws a `UserError` of one sentence, with the place, for the first mistake. */
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
 * The engine as it runs: with its own folder in the records, where its login is apart from the person's own, unless they name
 * others.
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

/** No host at all is a list of none. */
function networkOf(written: boolean | readonly string[]): ExternalEngine['network'] {
  return written === false ? [] : written
}

/** The hosts of the URLs that these variables hold. */
function hostsOf(variables: readonly string[], env: NodeJS.ProcessEnv): string[] {
  return variables.flatMap(variable => {
    const url = env[variable]
    return url !== undefined && URL.canParse(url) ? [new URL(url).hostname] : []
  })
}
