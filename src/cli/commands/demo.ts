import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createDemoRepository, demoGoal, demoScript } from '../../demo/demo-project.ts'
import { startScriptedModel } from '../../demo/scripted-model.ts'
import type { CliContext } from '../context.ts'
import type { RunFlags } from '../flags.ts'
import { run } from './run.ts'

/**
 * `demo`: a real run on a small project. Only the model is scripted, and answers on loopback; the codex, its sandbox and
 * tools, and everything of codemachine are what a real run uses. It lies in a temporary directory, its records in the person's home.
 */
export async function demo(
  context: CliContext,
  flags: Pick<RunFlags, 'codexBin' | 'plain' | 'json'> & { fast?: true },
): Promise<number> {
  const root = await mkdtemp(join(tmpdir(), 'codemachine-demo-'))
  const directory = join(root, 'linkcheck')
  const codexHome = join(root, 'codex-home')
  // Not in the temporary directory: an agent can write there.
  const records = join(context.home, '.codemachine', 'demo', basename(root))
  const env = {
    ...withoutSettings(context.env),
    CODEMACHINE_HOME: records,
    XDG_CONFIG_HOME: join(root, 'config'),
    CODEX_HOME: codexHome,
  }
  await createDemoRepository(directory, env)
  await mkdir(codexHome)
  await using model = await startScriptedModel({ script: demoScript(flags.fast ? 'instant' : 'watchable') })
  await writeFile(join(codexHome, 'config.toml'), model.codexConfig('scripted'))

  const say = (text: string) => void (flags.json ? context.stderr : context.stdout).write(`${text}\n`)
  say(`A scripted model plays the part of a real one; all else is real. It works in ${directory}.\n`)
  const { fast: _, ...runFlags } = flags
  const exitCode = await run({ ...context, env, cwd: directory }, demoGoal, runFlags, false)
  say(
    exitCode === 0
      ? howToLook(root, directory, records)
      : `\nThe demo ends here. To remove it: rm -r ${root} ${records}`,
  )
  return exitCode
}

/** The person's settings and keys have no part in the demo. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('CODEMACHINE_')))
}

function howToLook(root: string, directory: string, records: string): string {
  return `
The result lies in ${directory}. To look at it:
  cd ${directory}
  git log --oneline && node --test
  cat .codemachine/projects/*/MAIN.md
  CODEMACHINE_HOME=${records} codemachine logs
When you have seen enough: rm -r ${root} ${records}`
}
