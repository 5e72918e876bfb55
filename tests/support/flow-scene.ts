import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Recorded } from '../../src/core/events/events.ts'
import { openProject, processWorld } from '../../src/index.ts'
import { type FlowRun, runFlow } from '../../src/modes/flow/start/run.ts'
import type { RunOptions } from '../../src/project/library.ts'
import type { RunObserver } from '../../src/project/sessions.ts'
import type { Scene } from './scene.ts'

/** Lays files into the work directory. */
export async function lay({ place }: Scene, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(place.directory, path)), { recursive: true })
    await writeFile(join(place.directory, path), text)
  }
}

/** The text of a file of the work directory. */
export const at = ({ place }: Scene, path: string) => readFile(join(place.directory, path), 'utf8')

/** The workflow file of the scene. */
export const FILE = '.codex-flow/workflows/write.workflow.toml'
/** Begins a workflow file with one agent. */
export const HEAD = `name = "write"
[agents.writer]
prompt = "prompts/writer.md"
`
/** What that agent is told. */
export const PROMPT = { '.codex-flow/prompts/writer.md': 'You write {{plainly}}.\n' }

export interface FlowRan {
  exitCode: number
  events: Recorded[]
}

/** What the person's programs find there. */
export function worldOf({ place, engines }: Pick<Scene, 'place' | 'engines'>) {
  return processWorld({
    engines,
    env: place.env,
    home: place.home,
    cwd: place.directory,
    configHome: join(place.home, '.config'),
  })
}

/** Runs the workflow for real. */
export async function run(
  scene: Scene,
  said: Partial<FlowRun> = {},
  options: RunOptions = {},
  onEvent: (event: Recorded) => void = () => {},
): Promise<FlowRan> {
  const events: Recorded[] = []
  const view = {
    event(event: Recorded) {
      events.push(event)
      onEvent(event)
    },
    live() {},
  }
  const observer: RunObserver = { view, canAsk: true, ended() {} }
  const wanted: FlowRun = {
    file: FILE,
    workflow: null,
    given: new Map(),
    from: null,
    continueOnError: false,
    verbose: false,
    pace: 0,
    options: { keepAwake: false, ...options },
    ...said,
  }
  return { exitCode: await runFlow(worldOf(scene), wanted, observer), events }
}

/** Goes on with the newest session. */
export async function resume(scene: Scene): Promise<{ outcome: unknown; events: Recorded[] }> {
  await using project = await openProject(worldOf(scene), { keepAwake: false })
  const events: Recorded[] = []
  const { outcome } = await project.resume(null, { onEvent: event => void events.push(event) })
  return { outcome, events }
}
