import { lstat, opendir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode } from '../base/errors.ts'
import { findObstacle } from '../workspace/inside-directory.ts'
import { type Agent, findAgent } from './agent.ts'
import { type OwnPrompt, projectPrompt } from './agent-prompt.ts'
import { projectPaths } from './project-paths.ts'

/** A file among the prompts of a project that is no prompt of an enabled agent. */
interface StrangeFile {
  /** Which file it is, and as it is now: another one once it has been changed. */
  stamp: string
  /** What is wrong with it, a sentence. */
  problem: string
}

/** What a project has in `.codemachine/agents`. */
export interface ProjectPrompts {
  /** The prompts of enabled agents, by their names. */
  own: ReadonlyMap<string, OwnPrompt>
  strange: readonly StrangeFile[]
}

const folder = projectPaths.agentsFolder

/** The most files that are looked at. */
const MOST_FILES = 200

/** Looks at every `.codemachine/agents/*.md`: whose it is (an enabled one of `team`), and whether it can be used. */
export async function readProjectPrompts(directory: string, team: readonly Agent[]): Promise<ProjectPrompts> {
  const root = await realpath(directory)
  const own = new Map<string, OwnPrompt>()
  for (const { name, enabled } of team) {
    const prompt = enabled ? await projectPrompt(root, name) : null
    if (prompt !== null) own.set(name, prompt)
  }
  // What is in the way of the folder is said of each prompt.
  const isThere = (await findObstacle(root, folder)) === null
  return { own, strange: isThere ? await strangeFiles(join(root, folder), team) : [] }
}

/** The agents whose own prompt can be used. */
export function withOwnPrompt({ own }: ProjectPrompts): readonly string[] {
  return [...own].flatMap(([name, prompt]) => ('problem' in prompt ? [] : [name])).sort()
}

/** What is wrong with the prompts of a project, a sentence each. */
export function problemsWith({ own, strange }: ProjectPrompts): readonly string[] {
  const unusable = [...own.values()].flatMap(prompt => ('problem' in prompt ? [prompt.problem] : []))
  return [...new Set([...strange.map(({ problem }) => problem), ...unusable])]
}

async function strangeFiles(path: string, team: readonly Agent[]): Promise<readonly StrangeFile[]> {
  const { names, isCut } = await promptNames(path)
  const strange: StrangeFile[] = []
  if (isCut)
    strange.push({ stamp: '', problem: `${folder} has more than ${MOST_FILES} files; keep only the prompts there.` })
  for (const name of names) {
    const found = findAgent(team, name)
    if ('agent' in found) continue
    const problem = `${folder}/${JSON.stringify(name).slice(1, -1)}.md: ${found.problem}`
    strange.push({ stamp: `${name} ${await stampOf(join(path, `${name}.md`))}`, problem })
  }
  return strange
}

/** Of the files of a folder those that are prompts, without their ending. */
async function promptNames(path: string): Promise<{ names: readonly string[]; isCut: boolean }> {
  const names: string[] = []
  let files = 0
  try {
    for await (const { name } of await opendir(path)) {
      files += 1
      if (files > MOST_FILES) return { names: names.sort(), isCut: true }
      // A hidden one is what a write was cut off at.
      if (name.endsWith('.md') && !name.startsWith('.')) names.push(name.slice(0, -'.md'.length))
    }
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
  return { names: names.sort(), isCut: false }
}

async function stampOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeMs } = await lstat(path)
    return `${ino} ${size} ${mtimeMs}`
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return 'gone'
  }
}
