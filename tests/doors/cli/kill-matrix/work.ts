import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { addFile, patch } from '../../../../src/demo/actions.ts'
import type { ModelRequest, ScriptStep } from '../../../../src/demo/model/reply.ts'
import { message, type Reply, reasoning, reply, shell, updatePlan } from '../../../../src/demo/model/reply.ts'
import type { TestPlace } from '../../../support/place.ts'
import { openRealScene, type RealScene, type RealSceneOptions } from '../../../support/real-scene.ts'
import { folder } from '../../../support/rounds.ts'
import { usageHeaders, webSearch } from '../../../support/scripted-model.ts'

/** What a scene's model does differently at a step of every round; null: nothing. */
export type Turnout = (scene: RealScene, request: ModelRequest) => Reply | null | Promise<Reply | null>

/**
 * A scene in which every round plays the same, and does what the files say is next: so the outcome cannot depend on
 * where a round was cut off, or how often. Two parts have to be made, one a round; then all is ticked off, and done is
 * claimed. Three rounds if nothing happens: the claim of the second is refused, since it has changed files.
 */
export async function openWork(turnout: Turnout = () => null, options: RealSceneOptions = {}): Promise<RealScene> {
  let scene: RealScene | null = null
  const rounds = workIn(async (usual, request) => {
    const otherwise = scene && (await turnout(scene, request))
    return otherwise ?? usual(scene?.place.directory ?? '')
  })
  scene = await openRealScene(rounds, options)
  return scene
}

/** The rounds of such a scene; `play` answers at each step with what it usually answers in a work directory, or otherwise. `write`: how a file is written. */
export function workIn(
  play: (usual: (directory: string) => Reply, request: ModelRequest) => Reply | Promise<Reply>,
  write: typeof writeByPatch = writeByPatch,
): ScriptStep[][] {
  const step =
    (usual: (directory: string) => Reply): ScriptStep =>
    request =>
      play(usual, request)
  const look = [reasoning('I look at what there is.'), message('I look.'), webSearch('parts'), plan]
  const round = [
    step(() => ({ ...reply(...look), headers: someUsage })),
    step(directory => reply(draft(directory, write))),
    step(() => reply(shell(NEXT_PART))),
    step(() => reply(message('That was one step.', { phase: 'final_answer' }))),
  ]
  return Array<ScriptStep[]>(MOST_ROUNDS).fill(round)
}

/** The git tree of the work directory; `.codemachine` ignores itself. */
export function treeOf(place: TestPlace): string {
  const env = { ...place.env, GIT_INDEX_FILE: join(place.root, 'index') }
  const run = (...args: string[]) => execFileSync('git', args, { cwd: place.directory, env, encoding: 'utf8' }).trim()
  run('add', '-A')
  return run('write-tree')
}

/** What the next round has to do: whether nothing has been made yet, and the command that does it. */
export function nextPart(directory: string): { first: boolean; command: string } {
  return { first: !isMade(directory, 1), command: NEXT_PART }
}

function isMade(directory: string, part: number): boolean {
  return existsSync(join(directory, 'parts', `${part}.txt`))
}

const MOST_ROUNDS = 40
const PARTS = [1, 2]
const plan = updatePlan([
  { step: 'Make a part', status: 'in_progress' },
  { step: 'Claim done', status: 'pending' },
])

const someUsage = usageHeaders({ primary: { usedPercent: 10, windowMinutes: 300, resetsAt: 4_102_444_800 } })

/** What writes the next part's draft; when there is none to make, a command that does nothing. */
function draft(directory: string, write: typeof writeByPatch): ReturnType<typeof shell> {
  const next = PARTS.find(part => !isMade(directory, part))
  return next === undefined ? shell('true') : write(`parts/${next}.md`, `Draft of part ${next}.\n`)
}

function writeByPatch(path: string, text: string): ReturnType<typeof shell> {
  return patch(addFile(path, text))
}

/** For an engine without patches. */
export function writeByShell(path: string, text: string): ReturnType<typeof shell> {
  return shell(`mkdir -p parts; printf '%s' '${text}' > ${path}`)
}

/** Each file is whole or not there, wherever the script is cut off. */
const NEXT_PART = `
mkdir -p parts
whole() { cat > parts/.new; mv parts/.new "$1"; }
for n in ${PARTS.join(' ')}; do
  if [ ! -e parts/$n.txt ]; then echo "part $n" | whole parts/$n.txt; break; fi
done
if [ -e parts/${PARTS.at(-1)}.txt ]; then
  echo '{ "tasks": [{ "id": "T1", "name": "Make the parts", "done": true }] }' | whole ${folder}/tasks.json
  sed -i 's/^finite_incantatem: false/finite_incantatem: true/' ${folder}/MAIN.md
fi`
