import { existsSync } from 'node:fs'
import { glob, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { execa } from 'execa'
import { systemClock } from '../src/base/clock.ts'
import { packageRoot } from '../src/base/package.ts'
import type { Engine, RoundRun, ThreadSpec } from '../src/core/engine.ts'
import { message, reply, shell, turnsScript } from '../src/demo/model/reply.ts'
import { startScriptedModel } from '../src/demo/model/scripted-model.ts'
import { AcpEngine } from '../src/engines/acp/acp-engine.ts'
import { findCodex } from '../src/engines/codex/find-codex.ts'
import { startTimeOf } from '../src/platform/processes.ts'
import { effectiveEngines, externalEngine } from '../src/project/settings/engines.ts'
import {
  type Act,
  ANTHROPIC,
  type Dialect,
  GEMINI,
  type ModelServer,
  startModelServer,
  startResponsesServer,
} from './engines/model-servers.ts'

// Plays rounds on the real agents of other makers, each with a scripted model on loopback, and prints what works.

/** A real agent, and what leads it to the scripted model. */
interface Real {
  package: string
  dialect: Dialect | 'responses'
  env(url: string): Record<string, string>
  /** Files of its own folder, by path. */
  files?(model: ModelServer & { codexConfig?: string }): Record<string, string>
}

// ONLY=tool plays one row; SHOW=1 prints what happens.
const ENGINES: Readonly<Record<string, Real>> = {
  claude: {
    package: '@agentclientprotocol/claude-agent-acp',
    dialect: ANTHROPIC,
    env: url => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'sk-scripted', DISABLE_TELEMETRY: '1' }),
  },
  gemini: {
    package: '@google/gemini-cli',
    dialect: GEMINI,
    env: url => ({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: 'scripted', GEMINI_CLI_TRUST_WORKSPACE: 'true' }),
  },
  opencode: {
    package: 'opencode-ai',
    dialect: ANTHROPIC,
    env: () => ({ OPENCODE_DISABLE_MODELS_FETCH: '1' }),
    files: ({ url }) => ({
      'config/opencode/opencode.json': JSON.stringify({
        model: 'anthropic/claude-sonnet-4-5',
        small_model: 'anthropic/claude-sonnet-4-5',
        provider: { anthropic: { options: { baseURL: `${url}/v1`, apiKey: 'sk-scripted' } } },
      }),
    }),
  },
  'codex-acp': {
    package: '@agentclientprotocol/codex-acp',
    dialect: 'responses',
    env: url => ({ OPENAI_BASE_URL: url, OPENAI_API_KEY: 'sk-scripted' }),
    files: ({ codexConfig = '' }) => ({ 'config.toml': codexConfig }),
  },
}

const ROUND_MS = 180_000
/** Long enough for the agent to begin its round before codex has room again. */
const WINDOW_SECONDS = 25
// Without a substitution, which Gemini CLI runs none of.
const inMemory = (file: string, what: string) => `find .codemachine/projects -name ${file} -exec ${what} {} ';'`
const flag = inMemory('MAIN.md', "sed -i 's/^finite_incantatem: false/finite_incantatem: true/'")
const TASKS = JSON.stringify({ tasks: [{ id: 'T1', name: 'write it', done: true }] })
const WRONG_KEY: Act = {
  status: 401,
  body: {
    type: 'error',
    error: { type: 'authentication_error', message: 'invalid key', status: 'UNAUTHENTICATED', code: 401 },
  },
}
const THREAD: ThreadSpec = { agent: 'a', developerInstructions: 'Do it.', model: null, effort: null }
const WEIGH = {
  name: 'weigh',
  description: 'Weighs a thing.',
  inputSchema: { type: 'object', properties: { thing: { type: 'string' } }, required: ['thing'] },
}

const { platform, arch, pid } = process
const codex = await findCodex({
  flag: null,
  env: { PATH: '' },
  platform,
  arch,
  packageRoot,
  where: { workDirectory: [], gitDirectories: [], elsewhere: [], temporary: [] },
  copies: { folder: '/nowhere', makes: false },
})
const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(ENGINES)
// Not below a temporary folder, where every agent may write.
const folder = await mkdtemp(join(homedir(), '.codemachine-compat-'))
try {
  for (const name of wanted) {
    const real = ENGINES[name]
    if (real === undefined) throw new Error(`There is no engine ${name}; there are ${Object.keys(ENGINES).join(', ')}.`)
    for (const row of await play(name, real)) console.log(row)
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function play(name: string, real: Real): Promise<string[]> {
  const prefix = join(folder, name)
  await execa('npm', ['install', '--prefix', prefix, '--no-audit', '--no-fund', real.package])
  const { version } = JSON.parse(
    await readFile(join(prefix, 'node_modules', real.package, 'package.json'), 'utf8'),
  ) as { version: string }
  const at = { name, real, prefix }
  const rows = [`${name} (${version})`]
  for (const [what, row] of Object.entries({
    goal,
    tool,
    turns,
    interrupted,
    refused,
    closed,
    ...(name === 'claude' && { night }),
  })) {
    if (process.env.ONLY !== undefined && process.env.ONLY !== what) continue
    const said = await row(at).catch((error: unknown) => `FAILED: ${error instanceof Error ? error.message : error}`)
    rows.push(`  ${what}: ${said}`)
  }
  return rows
}

interface At {
  name: string
  real: Real
  prefix: string
}

/** A goal of two rounds by the built program, to its end. */
async function goal(at: At): Promise<string> {
  await using place = await placeFor(at, 'goal', [
    { run: 'echo 42 > answer; echo out > "$HOME/outside"' },
    { run: `echo '${TASKS}' > .git/tasks` },
    { run: inMemory('tasks.json', 'cp .git/tasks') },
    { run: flag },
    { say: 'This is as far as it goes.' },
    { run: flag },
    { say: 'It is done.' },
  ])
  const { events, ended, words } = await session(place, ['--engine', at.name, '--rounds', '3'])
  const began = events.find(event => event.type === 'round-started')
  return [
    words,
    `${ended?.tokens?.total ?? ended?.tokens ?? 'unknown'} tokens`,
    `reaches ${began?.reaches?.join(' ') ?? 'nothing'}`,
    `outside was ${existsSync(join(place.home, 'outside')) ? 'WRITTEN' : 'not written'}`,
    `${await left(place.mark)} processes left`,
  ].join('; ')
}

/** Codex fills its usage window in its second round, the agent goes on, and codex ends the goal once the window is reset. */
async function night(at: At): Promise<string> {
  const acts: Act[] = [
    { run: `node -e 'setTimeout(() => {}, ${WINDOW_SECONDS}e3)'; echo 42 > answer` },
    { say: 'The answer is there.' },
  ]
  await using place = await placeFor(at, 'night', acts)
  const claims = [shell(`echo '${TASKS}' > .git/tasks; ${inMemory('tasks.json', 'cp .git/tasks')}; ${flag}`)]
  const steps = [[shell('echo half > answer')], [message('That was half.')], null, claims, [message('It is done.')]]
  let asked = 0
  await using model = await startScriptedModel({
    script: turnsScript(() => {
      const step = steps[asked++]
      if (step !== null) return reply(...(step ?? [message('Done.')]))
      const error = { type: 'usage_limit_reached', message: 'limit', plan_type: 'pro' }
      const resetsAt = Math.ceil(Date.now() / 1000) + WINDOW_SECONDS
      return { kind: 'status', status: 429, body: { error: { ...error, resets_at: resetsAt } } }
    }),
  })
  await writeFile(join(place.env.CODEX_HOME, 'config.toml'), model.codexConfig('scripted'))
  await mkdir(join(place.home, '.config', 'codemachine'), { recursive: true })
  await writeFile(join(place.home, '.config', 'codemachine', 'config.toml'), 'fallback_after = "5s"\n')
  const { events, words } = await session(place, ['--fallback', at.name, '--rounds', '6'])
  const began = events.flatMap(event => (event.type === 'round-started' ? [event.engine] : []))
  const [found = ''] = await Array.fromAsync(glob('state/*/sessions/*/done.json', { cwd: place.records }))
  const { engines } = found === '' ? { engines: null } : JSON.parse(await readFile(join(place.records, found), 'utf8'))
  return `${words}; on ${began.join(', ')}; engines ${JSON.stringify(engines)}; ${await left(place.mark)} processes left`
}

/** Has the built program work on the goal, and tells how that ended. */
async function session(place: Awaited<ReturnType<typeof placeFor>>, more: readonly string[]) {
  const args = ['--json', ...more, '--verify', 'grep -q 42 answer', 'Write the answer']
  const ran = await execa('node', [join(packageRoot, 'dist', 'bin.js'), ...args], {
    cwd: place.work,
    reject: false,
    extendEnv: false,
    timeout: ROUND_MS,
    env: place.env,
  })
  const events = ran.stdout.split('\n').flatMap(line => (line.startsWith('{') ? [JSON.parse(line)] : []))
  const ended = events.findLast(event => event.type === 'session-ended')
  if (process.env.SHOW) console.error(ran.stdout, ran.stderr)
  const { kind = 'no end', verified = false } = ended?.outcome ?? {}
  const words = `${kind}${verified ? ', verified' : ''}, exit code ${ran.exitCode}, ${ended?.rounds ?? 0} rounds`
  return { events, ended, words }
}

/** A tool of codemachine over MCP. */
async function tool(at: At): Promise<string> {
  const calls: unknown[] = []
  const acts: Act[] = [{ call: 'weigh', with: { thing: 'a stone' } }, { say: 'Done.' }]
  const { outcome } = await round(at, 'tool', acts, async (engine, run) => {
    const prepared = engine.prepare({ ...THREAD, tools: [WEIGH] })
    return await prepared.run({
      ...run,
      onToolCall: async call => {
        calls.push(call)
        return { text: 'Three pounds.', success: true }
      },
    })
  })
  return `${calls.length} call ${JSON.stringify(calls)}, ${outcome}`
}

/** Two turns in one thread. */
async function turns(at: At): Promise<string> {
  const acts: Act[] = [{ run: 'echo 1 > one' }, { say: 'One.' }, { run: 'echo 2 > two' }, { say: 'Two.' }]
  const { outcome, files, begunMs } = await round(at, 'turns', acts, async (engine, run) => {
    const prepared = engine.prepare(THREAD)
    const first = await prepared.run({ ...run, keepsThread: true })
    const second = await prepared.carryOn('And the second.')
    if (process.env.SHOW) console.error(first, second)
    prepared.discard()
    return second ?? first
  })
  return `${outcome}; files ${files.join(' ')}; the first turn began after ${begunMs} ms`
}

/** A command that runs is interrupted. */
async function interrupted(at: At): Promise<string> {
  const { outcome, memory } = await round(at, 'interrupted', [{ run: 'sleep 1000' }], async (engine, run, mark) => {
    const prepared = engine.prepare(THREAD)
    const begun = Promise.withResolvers<void>()
    const over = prepared.run({
      ...run,
      onLive: event => void (event.type === 'item-started' && event.item.kind === 'command' && begun.resolve()),
    })
    await Promise.race([begun.promise, over, wait(60_000, undefined, { ref: false })])
    const steered = await prepared.steer('Look here.')
    const memory = await memoryOf(mark)
    await prepared.interrupt()
    return { ...(await over), memory, message: steered ? 'it took the text' : null }
  })
  return `${outcome}; ${memory} MB while it ran`
}

/** A wrong key. */
async function refused(at: At): Promise<string> {
  const { outcome } = await round(at, 'refused', [WRONG_KEY], async (engine, run) => {
    const prepared = engine.prepare(THREAD)
    const late = wait(60_000, undefined, { ref: false }).then(async () => {
      await prepared.interrupt()
      return { class: 'silent' as const, message: 'nothing in 60 s' }
    })
    return await Promise.race([prepared.run(run), late])
  })
  return outcome
}

/** A host that is in no list. */
async function closed(at: At): Promise<string> {
  const { outcome, asked } = await round(
    at,
    'closed',
    [{ say: 'Done.' }],
    async (engine, run) => {
      const prepared = engine.prepare(THREAD)
      const late = wait(60_000, undefined, { ref: false }).then(async () => {
        await prepared.interrupt()
        return { class: 'silent' as const, message: 'nothing in 60 s' }
      })
      return await Promise.race([prepared.run(run), late])
    },
    ['example.com'],
  )
  return `${outcome}; its model was asked ${asked} times`
}

/** One round of a script on the engine itself. */
async function round(
  at: At,
  what: string,
  acts: readonly Act[],
  does: (
    engine: Engine,
    run: RoundRun,
    mark: string,
  ) => Promise<{ class: string; message: string | null; memory?: number }>,
  network?: readonly string[],
): Promise<{ outcome: string; files: string[]; begunMs: number; memory: number; asked: number }> {
  await using place = await placeFor(at, what, acts)
  const named = effectiveEngines({ value: {}, placeOf: () => 'here' } as never).get(at.name)
  if (named === undefined) throw new Error(`There is no engine ${at.name}.`)
  const external = externalEngine(named, { home: place.home, root: place.records, env: place.env })
  const engine = new AcpEngine(
    { ...external, ...(network && { network }) },
    {
      directory: place.work,
      sandbox: { mode: 'workspace-write', network: false, writable: [] },
      env: place.env,
      binary: codex,
      overrides: [],
      key: place.mark,
      owner: { pid, startTime: await startTimeOf(pid, platform) },
      platform,
      clock: systemClock,
      codemachineVersion: '0.0.0',
      requestMs: 60_000,
      endMs: 5_000,
      silenceMs: 360_000,
      commandMs: 3_600_000,
      log: text => process.env.SHOW && console.error(text),
    },
  )
  const began = performance.now()
  let begunMs = 0
  const run: RoundRun = {
    round: 1,
    input: 'Go on.',
    onEvent: event => {
      if (event.type === 'turn-started') begunMs ||= Math.round(performance.now() - began)
      if (process.env.SHOW) console.error(JSON.stringify(event))
    },
    onLive() {},
    onRecord() {},
  }
  const end = await does(engine, run, place.mark)
  await engine.close()
  const processes = await left(place.mark)
  return {
    outcome: `${end.class}${end.message === null ? '' : ` (${end.message.slice(0, 160)})`}, ${processes} processes left`,
    files: (await readdir(place.work)).filter(file => !file.startsWith('.')),
    begunMs,
    memory: end.memory ?? 0,
    asked: place.asked(),
  }
}

/** A home, a repository, and a model that does these acts. */
async function placeFor({ name, real, prefix }: At, what: string, acts: readonly Act[]) {
  const model =
    real.dialect === 'responses' ? await startResponsesServer(acts) : await startModelServer(real.dialect, acts)
  const root = join(folder, `${name}-${what}`)
  const [home, work, records] = [join(root, 'home'), join(root, 'work'), join(root, 'home', '.codemachine')]
  for (const each of [home, work, join(root, 'codex')]) await mkdir(each, { recursive: true })
  for (const [path, text] of Object.entries(real.files?.(model) ?? {})) {
    const file = join(records, 'engines', name, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
  }
  await writeFile(join(work, 'README.md'), '# A project\n')
  for (const args of [
    ['init', '-q'],
    ['add', '-A'],
    ['-c', 'user.name=n', '-c', 'user.email=e@x', 'commit', '-qm', 'first'],
  ])
    await execa('git', args, { cwd: work })
  const mark = `compat-${pid}-${name}-${what}`
  const { IS_SANDBOX: _, ...inherited } = process.env
  return {
    work,
    home,
    records,
    mark,
    asked: () => model.asked,
    env: {
      ...inherited,
      ...real.env(model.url),
      HOME: home,
      CODEX_HOME: join(root, 'codex'),
      CODEMACHINE_HOME: records,
      XDG_CONFIG_HOME: join(home, '.config'),
      COMPAT_MARK: mark,
      PATH: `${join(prefix, 'node_modules', '.bin')}:${inherited.PATH}`,
    },
    [Symbol.asyncDispose]: () => model[Symbol.asyncDispose](),
  }
}

/** How many processes have the mark in their environment. */
async function left(mark: string): Promise<number> {
  return (await marked(mark)).length
}

/** The resident memory of all that have the mark, MB. */
async function memoryOf(mark: string): Promise<number> {
  const sizes = await Promise.all(
    (await marked(mark)).map(async each => {
      const status = await readFile(`/proc/${each}/status`, 'utf8').catch(() => '')
      return Number(/^VmRSS:\s*(\d+)/m.exec(status)?.[1] ?? 0)
    }),
  )
  return Math.round(sizes.reduce((sum, size) => sum + size, 0) / 1024)
}

async function marked(mark: string): Promise<string[]> {
  const { stdout } = await execa(
    'sh',
    ['-c', `grep -lz "^COMPAT_MARK=${mark}$" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3`],
    { reject: false },
  )
  return stdout.split('\n').filter(each => each !== '')
}
