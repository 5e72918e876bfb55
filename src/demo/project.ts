import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Action, conclude, play, projectSources, say, shell } from './actions.ts'
import { agentsScript } from './agents-script.ts'
import { type ModelRequest, reply, type Script, type ScriptStep } from './model/reply.ts'
import { goalOf, goalsInTurn, sessionOf } from './queued.ts'

const sources = projectSources('linkcheck')

/** The goal of the demo's session; `contract.json` quotes each of its sentences. */
export const demoGoal = `Build bin/linkcheck.js, a command that finds links in Markdown that lead to missing files or headings.
It prints the file and line of each, and its exit code tells whether there are any.
A name may be percent-encoded: my%20notes.md is the file "my notes.md".
Keep IDEA.md as it is, and use no dependencies.`

/** A round, with the items of each reply. */
interface Round {
  steps: readonly (readonly Action[])[]
}

/** A sentence of the goal, with what its author and the writer of wrong versions answer. */
interface ContractSentence {
  quote: string
  kind: string
  check: ContractCheck
  version: { summary: string; edits: readonly object[] }
  /** The check that is added once the wrong version was not caught. */
  second?: ContractCheck
}

/** `files`: sources of the project, by their paths in the folder of the check. */
interface ContractCheck {
  run: string
  files: Readonly<Record<string, string>>
}

/**
 * The script of the demo: a contract, then six rounds. The third claims and has changed files, the fourth claims and misses a
 * sentence, the sixth claims and is proved. Then it notes each prompt that waits. `watchable` sends text at reading speed.
 */
export function demoScript(pace: 'instant' | 'watchable'): Script {
  const deltaMs = pace === 'watchable' ? 10 : 0
  const rounds = sources.json<readonly Round[]>('rounds.json')
  const sentences = sources.json<readonly ContractSentence[]>('contract.json')
  return agentsScript({
    goal: goalsInTurn(
      rounds.map(({ steps }) => steps.map(step => scriptStep(step, deltaMs))),
      deltaMs,
    ),
    contract: (_, request) => {
      const goal = goalOf(request)
      if (goal !== demoGoal) return [reply(conclude(JSON.stringify({ sentences: [notCheckable(goal)] })))]
      if (!JSON.stringify(request.body.text).includes('"sentences"')) {
        const { second } = sentenceAskedAbout(sentences, request)
        return [reply(conclude(JSON.stringify({ checks: second === undefined ? [] : [checkAsAsked(second)] })))]
      }
      const asked = sentences.map(({ quote, kind, check }) => ({
        quote,
        kind,
        reason: null,
        checks: [checkAsAsked(check)],
      }))
      return [
        { ...reply(say('Four sentences. Each gets a check.'), shell('ls; cat IDEA.md')), deltaMs },
        reply(conclude(JSON.stringify({ sentences: asked }))),
      ]
    },
    control: (_, request) => [
      reply(conclude(JSON.stringify({ versions: [sentenceAskedAbout(sentences, request).version] }))),
    ],
    replan: () => [reply(conclude('A script plays my part, so the plan stays as it is.'))],
  })
}

/** The sentence that a turn is about: its input has the goal, and that sentence once more. */
function sentenceAskedAbout(sentences: readonly ContractSentence[], { userTexts }: ModelRequest): ContractSentence {
  const found = sentences.find(({ quote }) => userTexts.join('\n').split(quote).length > 2)
  if (found === undefined) throw new Error('the input of the turn is about no sentence of contract.json')
  return found
}

/** A prompt that a person queued, as the sentence of a contract. */
function notCheckable(quote: string) {
  return {
    quote,
    kind: 'not-checkable',
    reason: 'A script plays the model in a demo, and writes no checks.',
    checks: [],
  }
}

function checkAsAsked({ run, files }: ContractCheck) {
  const texts = Object.entries(files).map(([path, from]) => ({ path, text: sources.text(from) }))
  return { run, seconds: 30, needs: null, files: texts }
}

function scriptStep(step: readonly Action[], deltaMs: number): ScriptStep {
  return request => {
    const scene = { sources, session: sessionOf(request), plan: sources.text('codemachine/session/tasks.json') }
    return { ...reply(...step.map(action => play(action, scene))), deltaMs }
  }
}

/**
 * Creates the git repository of the demo in `directory`, which has to be empty or missing: an idea in one commit.
 * `env`: the environment of git.
 */
export async function createDemoRepository(
  directory: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await createRepository(
    directory,
    { files: { 'IDEA.md': sources.text('IDEA.md') }, message: 'Write down the idea' },
    env,
  )
}

/**
 * Creates a git repository in `directory`, which has to be empty or missing, with one commit of `files` (texts by file
 * name). The repository has its own identity, so committing needs none of the person's settings.
 * @param env the environment of git
 */
export async function createRepository(
  directory: string,
  commit: { files: Readonly<Record<string, string>>; message: string },
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const git = async (...args: readonly string[]) => {
    await promisify(execFile)('git', [...args], { cwd: directory, env })
  }
  await mkdir(directory, { recursive: true })
  for (const [name, text] of Object.entries(commit.files)) await writeFile(join(directory, name), text)
  await git('init', '--quiet', '--initial-branch=main', '--template=')
  for (const [key, value] of Object.entries(GIT_CONFIG)) await git('config', '--local', key, value)
  await git('add', '--all')
  await git('commit', '--quiet', '--message', commit.message)
}

/** Settings with which the person's own git configuration could change the demo's commits. */
const GIT_CONFIG = {
  'user.name': 'codemachine demo',
  'user.email': 'demo@localhost',
  'commit.gpgSign': 'false',
  'core.hooksPath': '.git/hooks',
  'core.autocrlf': 'false',
}
