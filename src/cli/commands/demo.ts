import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { buildScript, createBuildRepository } from '../../demo/build.ts'
import type { Script } from '../../demo/model/reply.ts'
import { startScriptedModel } from '../../demo/model/scripted-model.ts'
import { createDemoRepository, demoGoal, demoScript } from '../../demo/project.ts'
import type { CliContext } from '../../tui/cli-context.ts'
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
  const codexHome = join(root, 'codex-home')
  const configHome = join(root, 'config')
  // Not in the temporary directory: an agent can write there.
  const records = join(context.home, '.codemachine', 'demo', basename(root))
  const env = {
    ...withoutSettings(context.env),
    CODEMACHINE_HOME: records,
    XDG_CONFIG_HOME: configHome,
    CODEX_HOME: codexHome,
  }
  await shown.create(directory, env)
  await mkdir(codexHome)
  await using model = await startScriptedModel({
    script: shown.script(fast ? 'instant' : 'watchable'),
    models: [MODEL],
  })
  await writeFile(join(codexHome, 'config.toml'), model.codexConfig(MODEL))
  // As a provider of the person's: codex would say in each round that it has not heard of the model.
  const provider = {
    CODEMACHINE_PROVIDER: MODEL,
    CODEMACHINE_PROVIDERS_SCRIPTED_BASE_URL: model.url,
    CODEMACHINE_PROVIDERS_SCRIPTED_MODEL: MODEL,
  }

  const say = (text: string) => void (flags.json ? context.stderr : context.stdout).write(`${text}\n`)
  say(`A scripted model plays the part of a real one; all else is real. It works in ${directory}.\n`)
  const exitCode = await shown.play(
    { ...context, env: { ...env, ...provider }, configHome, cwd: directory },
    { ...runFlags, ...PROOF },
  )
  say(
    exitCode === 0
      ? howToLook(root, directory, records, shown.look)
      : `\nThe demo ends here. To remove it: rm -r ${root} ${records}`,
  )
  return exitCode
}

/** The scripted model, and the provider that has it. */
const MODEL = 'scripted'

interface Showing {
  /** Name of its folder. */
  project: string
  create(directory: string, env: NodeJS.ProcessEnv): Promise<void>
  script(pace: 'instant' | 'watchable'): Script
  play(context: CliContext, flags: RunFlags): Promise<number>
  /** Commands that show what has become of it. */
  look: readonly string[]
}

const showings: Readonly<Record<DemoFlags['template'], Showing>> = {
  goal: {
    project: 'linkcheck',
    create: createDemoRepository,
    script: demoScript,
    play: (context, flags) => run(context, demoGoal, flags, false),
    look: ['git log --oneline && node --test', 'cat .codemachine/projects/*/MAIN.md'],
  },
  build: {
    project: 'reading-list',
    create: createBuildRepository,
    script: pace => buildScript(pace, { impossibleTask: false }),
    play: (context, flags) => start(context, { ...flags, yes: true, template: 'build' }, false),
    look: [
      'node --test && node bin/reading-list.js books.json index.html',
      'cat .codemachine/plan/tasks.json .codemachine/memory/.*-memory.md',
    ],
  },
}

/** What a person would have checked: the project's own tests. */
const PROOF: Pick<RunFlags, 'verify' | 'keepAwake'> = { verify: ['node --test'], keepAwake: false }

/** The person's settings and keys have no part in the demo. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('CODEMACHINE_')))
}

function howToLook(root: string, directory: string, records: string, look: readonly string[]): string {
  return `
The result lies in ${directory}. To look at it:
  cd ${directory}
${look.map(line => `  ${line}`).join('\n')}
  CODEMACHINE_HOME=${records} codemachine logs
When you have seen enough: rm -r ${root} ${records}`
}
