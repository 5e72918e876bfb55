import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { ownCommandLine, packageRoot } from '../../../base/package.ts'
import { buildScript, createBuildRepository } from '../../../demo/build.ts'
import type { Script } from '../../../demo/model/reply.ts'
import { startScriptedModel } from '../../../demo/model/scripted-model.ts'
import { createDemoRepository, demoGoal, demoScript } from '../../../demo/project.ts'
import { inHome } from '../../../platform/files.ts'
import { shellWord } from '../../../platform/shell-word.ts'
import { placesOf } from '../../../project/world.ts'
import { openRecords, rootOf } from '../../../session/records/records.ts'
import { wrapLine } from '../../../tell/words/cells.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { columnsOf } from '../decision-prompt.ts'
import type { RunFlags } from '../flags.ts'
import { run, start } from './run.ts'

/** What the flags of `demo` say. */
export interface DemoFlags extends Pick<RunFlags, 'codexBin' | 'plain' | 'json'> {
  template: 'goal' | 'build'
  /** The model answers as fast as it can. */
  fast?: true
}

/**
 * `demo`: a real run on a small project. Only the model is scripted, and answers on loopback; the codex, its sandbox and
 * tools, and everything of codemachine are what a real run uses. It lies in a temporary directory, its records in the person's home.
 */
export async function demo(context: CliContext, flags: DemoFlags): Promise<number> {
  const { template, fast, ...runFlags } = flags
  const shown = showings[template]
  const root = await mkdtemp(join(tmpdir(), 'codemachine-demo-'))
  const directory = join(root, shown.project)
  const configHome = join(root, 'config')
  // Not in the temporary directory: an agent can write there, and codex keeps no helper there for an older bubblewrap.
  const records = join(rootOf(context), 'demo', basename(root).replace(/^.*-/, ''))
  await using model = await openDemoModel(context, shown.script(fast ? 'instant' : 'watchable'), {
    records,
    configHome,
  })
  await shown.create(directory, model.env)
  // A person at a terminal has time to read the choices.
  const env = { ...model.env, CODEMACHINE_DECIDE_AFTER: fast ? '1s' : context.stdout.isTTY === true ? '10s' : '2s' }

  const say = (text: string) => void (flags.json ? context.stderr : context.stdout).write(`${text}\n`)
  const greeting = [
    `This builds ${shown.builds}`,
    `A scripted model plays the part of a real one; all else is real. It works in ${directory}.`,
  ]
  say(`${greeting.flatMap(line => wrapLine(line, columnsOf(context))).join('\n')}\n`)
  const inDemo: CliContext = { ...context, env, configHome, cwd: directory, isDemo: true }
  const exitCode = await shown.play(inDemo, { ...runFlags, keepAwake: false, verify: ['node --test'] })
  const [first, ...queued] = await (await openRecords(placesOf(inDemo, directory))).sessions()
  const made = { root, directory, records, session: queued.length === 0 ? null : (first ?? null) }
  say(
    exitCode === 0
      ? await howToLook(context, { ...made, look: shown.look })
      : `\nThe demo ends here. A demo cannot be resumed; the same command begins another.\n${await howToSee(context, made, ['logs'])}`,
  )
  return exitCode
}

/** The scripted model, and the provider that has it. */
const MODEL = 'scripted'

/** Starts the scripted model; `env` has codemachine and codex use it, and neither the person's settings nor records. */
export async function openDemoModel(
  context: CliContext,
  script: Script,
  { records, configHome }: { records: string; configHome: string },
): Promise<AsyncDisposable & { env: NodeJS.ProcessEnv }> {
  const codexHome = join(records, 'codex-home')
  await mkdir(codexHome, { recursive: true })
  const model = await startScriptedModel({ script, models: [MODEL] })
  await writeFile(join(codexHome, 'config.toml'), model.codexConfig(MODEL))
  return {
    env: {
      ...withoutSettings(context.env),
      CODEMACHINE_HOME: records,
      XDG_CONFIG_HOME: configHome,
      CODEX_HOME: codexHome,
      // As a provider of the person's: codex would say in each round that it has not heard of the model.
      CODEMACHINE_PROVIDER: MODEL,
      CODEMACHINE_PROVIDERS_SCRIPTED_BASE_URL: model.url,
      CODEMACHINE_PROVIDERS_SCRIPTED_MODEL: MODEL,
    },
    [Symbol.asyncDispose]: () => model[Symbol.asyncDispose](),
  }
}

interface Showing {
  /** What it builds, and how; goes on after "This builds". */
  builds: string
  /** Name of its folder. */
  project: string
  create(directory: string, env: NodeJS.ProcessEnv): Promise<void>
  script(pace: 'instant' | 'watchable'): Script
  play(context: CliContext, flags: RunFlags): Promise<number>
  /** A command line that shows what has become of it. */
  look: string
}

const showings: Readonly<Record<DemoFlags['template'], Showing>> = {
  goal: {
    builds: 'linkcheck, a command that finds broken links in Markdown, and proves each sentence of its goal.',
    project: 'linkcheck',
    create: createDemoRepository,
    script: demoScript,
    play: (context, flags) => run(context, demoGoal, { ...flags, prove: true }, false),
    look: 'node --test',
  },
  build: {
    builds: 'reading-list, a command that makes a page of a list of books, by a team of agents.',
    project: 'reading-list',
    create: createBuildRepository,
    script: pace => buildScript(pace, { impossibleTask: false }),
    play: (context, flags) => start(context, { ...flags, yes: true, template: 'build' }, false),
    look: 'node bin/reading-list.js books.json index.html',
  },
}

/** The person's settings and keys have no part in the demo. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('CODEMACHINE_')))
}

/** How to look at the result and remove it; last, what begins the same in a project of one's own. */
async function howToLook(context: CliContext, shown: Shown & { look: string }): Promise<string> {
  return `
The result: cd ${shellWord(shown.directory)} && ${shown.look}
${await howToSee(context, shown, ['report --open', 'logs', 'verify'])}

${nowYours(context)}`
}

/** The lines of commands that look at the session. Its records lie in a home of their own, and so does the program that names this. */
async function howToSee(
  context: CliContext,
  { root, directory, records, session }: Shown,
  commands: readonly (keyof typeof LOOKS)[],
): Promise<string> {
  const program = join(records, 'codemachine')
  const text = `#!/bin/sh
[ "$1" = resume ] && { echo "A demo cannot be resumed: begin another." >&2; exit 2; }
cd ${shellWord(directory)} && CODEMACHINE_HOME=${shellWord(records)} exec ${ownCommandLine()} "$@"
`
  await mkdir(records, { recursive: true })
  await writeFile(program, text, { mode: 0o700 })
  const lines = commands.map(command => {
    const ofSession = session === null ? command : command.replace(/^\w+/, name => `${name} ${session}`)
    return `${LOOKS[command]}: ${typed(program, context)} ${ofSession}`
  })
  return [...lines, `To remove it: rm -r ${shellWord(root)} ${typed(records, context)}`].join('\n')
}

const LOOKS = { 'report --open': 'Its report', logs: 'Its session', verify: 'Prove it again' }

/** A path as a word for a shell. */
function typed(path: string, { home }: CliContext): string {
  const short = inHome(path, home)
  return shellWord(short.slice(2)) === short.slice(2) ? short : shellWord(path)
}

interface Shown {
  root: string
  directory: string
  records: string
  /** The demo's own session, where a queued prompt began a newer one; null: it is the newest. */
  session: string | null
}

/** How to begin in a project of one's own: with the program's name, where this was typed, else after it is installed. */
function nowYours({ own, program, cwd }: CliContext): string {
  const goal = `codemachine "${FIRST_GOAL}"`
  if (basename(own.command.at(-1) ?? '') === program) return `Now yours, in your project: ${goal}`
  const checkout = cwd === packageRoot ? '.' : shellWord(packageRoot)
  return `Now yours: npm install --global ${checkout}\nIn your project: ${goal}`
}

/** One that makes sense in any project. */
const FIRST_GOAL = 'test the riskiest code that no test covers'
