import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { type Act, ANTHROPIC, GEMINI, startModelServer } from './engines/model-servers.ts'

// Plays rounds on the real agents of other makers, each with a scripted model on loopback, and prints what works.
const ENGINES = {
  claude: {
    package: '@agentclientprotocol/claude-agent-acp',
    dialect: ANTHROPIC,
    env: (url: string) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'sk-scripted', DISABLE_TELEMETRY: '1' }),
  },
  gemini: {
    package: '@google/gemini-cli',
    dialect: GEMINI,
    env: (url: string) => ({
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_API_KEY: 'scripted',
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
    }),
  },
} as const
type Name = keyof typeof ENGINES

const ROUND_MS = 180_000
// Without a substitution, which Gemini CLI runs none of.
const inMemory = (file: string, what: string) => `find .codemachine/projects -name ${file} -exec ${what} {} ';'`
const flag = inMemory('MAIN.md', "sed -i 's/^finite_incantatem: false/finite_incantatem: true/'")
const TASKS = JSON.stringify({ tasks: [{ id: 'T1', name: 'write it', done: true }] })

const wanted = (process.argv.length > 2 ? process.argv.slice(2) : Object.keys(ENGINES)) as Name[]
// Not below a temporary folder, where every agent may write.
const folder = await mkdtemp(join(homedir(), '.codemachine-compat-'))
try {
  for (const name of wanted) for (const row of await play(name)) console.log(row)
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function play(name: Name): Promise<string[]> {
  const prefix = join(folder, name)
  await execa('npm', ['install', '--prefix', prefix, '--no-audit', '--no-fund', ENGINES[name].package])
  const done = await session(name, prefix, 'works', [
    { run: 'echo 42 > answer; echo out > "$HOME/outside"' },
    { run: `echo '${TASKS}' > .git/tasks` },
    { run: inMemory('tasks.json', 'cp .git/tasks') },
    { run: flag },
    { say: 'This is as far as it goes.' },
    { run: flag },
    { say: 'It is done.' },
  ])
  const refused = await session(name, prefix, 'refused', [
    {
      status: 401,
      body: {
        type: 'error',
        error: { type: 'authentication_error', message: 'invalid key', status: 'UNAUTHENTICATED', code: 401 },
      },
    },
  ])
  return [
    `${name} (${done.version}): ${done.kind}, exit code ${done.exitCode}, ${done.rounds} rounds, ${done.tokens} tokens`,
    `  it wrote outside of the work directory: ${done.escaped ? 'YES' : 'no'}; processes left: ${done.left}`,
    `  a wrong key ends the round as ${refused.lastClass}: ${refused.lastMessage}`,
  ]
}

async function session(name: Name, prefix: string, what: string, acts: readonly Act[]) {
  const { dialect, env } = ENGINES[name]
  await using model = await startModelServer(dialect, acts)
  const root = join(folder, `${name}-${what}`)
  const [home, work] = [join(root, 'home'), join(root, 'work')]
  for (const each of [home, work, join(root, 'codex')]) await mkdir(each, { recursive: true })
  await writeFile(join(work, 'README.md'), '# A project\n')
  for (const args of [
    ['init', '-q'],
    ['add', '-A'],
    ['-c', 'user.name=n', '-c', 'user.email=e@x', 'commit', '-qm', 'first'],
  ])
    await execa('git', args, { cwd: work })
  const mark = `compat-${process.pid}-${name}-${what}`
  const { IS_SANDBOX: _, ...inherited } = process.env
  const ran = await execa(
    'node',
    [
      join(import.meta.dirname, '..', 'dist', 'bin.js'),
      '--json',
      '--engine',
      name,
      '--rounds',
      '3',
      '--max-wait',
      '1s',
      '--verify',
      'grep -q 42 answer',
      'Write the answer',
    ],
    {
      cwd: work,
      reject: false,
      extendEnv: false,
      timeout: ROUND_MS,
      env: {
        ...inherited,
        ...env(model.url),
        HOME: home,
        CODEX_HOME: join(root, 'codex'),
        CODEMACHINE_HOME: join(home, '.codemachine'),
        XDG_CONFIG_HOME: join(home, '.config'),
        COMPAT_MARK: mark,
        // Claude Code tries a refused request again for minutes, and says nothing meanwhile.
        CODEMACHINE_SILENCE_MINUTES: '1',
        PATH: `${join(prefix, 'node_modules', '.bin')}:${inherited.PATH}`,
      },
    },
  )
  const events = ran.stdout.split('\n').flatMap(line => (line.startsWith('{') ? [JSON.parse(line)] : []))
  const ended = events.findLast(event => event.type === 'session-ended')
  const round = events.findLast(event => event.type === 'round-ended')
  if (process.env.SHOW) console.error(ran.stdout, ran.stderr)
  return {
    version: JSON.parse(await readFile(join(prefix, 'node_modules', ENGINES[name].package, 'package.json'), 'utf8'))
      .version,
    kind: ended?.outcome.kind ?? 'no end',
    exitCode: ran.exitCode,
    rounds: ended?.rounds ?? 0,
    tokens: ended?.tokens?.total ?? ended?.tokens ?? 'unknown',
    escaped: existsSync(join(home, 'outside')),
    left: await marked(mark),
    lastClass: round?.outcome.class ?? 'none',
    lastMessage: String(round?.outcome.message ?? '').slice(0, 120),
  }
}

/** How many processes have the mark in their environment. */
async function marked(mark: string): Promise<number> {
  const { stdout } = await execa(
    'sh',
    ['-c', `grep -lz "^COMPAT_MARK=${mark}$" /proc/[0-9]*/environ 2>/dev/null | wc -l`],
    { reject: false },
  )
  return Number(stdout)
}
