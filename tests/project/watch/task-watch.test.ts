import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { TaskBoard } from '../../../src/core/state/plan.ts'
import { buildKind } from '../../../src/modes/from-specification/build.ts'
import { goalKind } from '../../../src/modes/goal/goal.ts'
import { type BoardPlace, boardPlaceOf, readTaskBoard, watchTasks } from '../../../src/project/watch/task-watch.ts'
import { nothingSecret, redactorOf } from '../../../src/secrets/redactor.ts'
import type { Records } from '../../../src/session/records/records.ts'
import { created, foldAll, SESSION } from '../../support/session-events.ts'
import { TestClock } from '../../support/test-clock.ts'

const main = (title: string, inProgress: string) =>
  `---\nstatus: in-progress\nfinite_incantatem: false\nshort_title: ${title}\n---\n## In progress\n- [ ] ${inProgress}\n`
const tasksOf = (...done: boolean[]) =>
  JSON.stringify({
    tasks: done.map((each, index) => ({ id: `T${index + 1}`, name: 'n', phase: 'Building', done: each })),
  })

async function makeFolder() {
  const directory = await mkdtemp(join(tmpdir(), 'task-watch-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const folder = join(directory, '.codemachine', 'projects', '20261120_1')
  await mkdir(folder, { recursive: true })
  return { directory, folder, file: (name: string) => join(folder, name) }
}

/** Watches it until the test is over. */
function watched(place: Pick<BoardPlace, 'folder' | 'directory' | 'work'>) {
  const boards: TaskBoard[] = []
  const ending = new AbortController()
  const waiting: { matches: (board: TaskBoard) => boolean; resolve: () => void }[] = []
  const onBoard = (board: TaskBoard) => {
    boards.push(board)
    for (const { matches, resolve } of waiting) if (matches(board)) resolve()
  }
  const over = watchTasks({ ...place, redactor: nothingSecret, clock: new TestClock(), signal: ending.signal, onBoard })
  onTestFinished(async () => {
    ending.abort()
    await over
  })
  const until = (matches: (board: TaskBoard) => boolean) =>
    new Promise<void>(resolve => {
      waiting.push({ matches, resolve })
      if (boards.some(matches)) resolve()
    })
  return { boards, until }
}

test('the board follows what an agent writes, and tells only what has changed', async () => {
  const place = await makeFolder()
  await writeFile(place.file('MAIN.md'), main('Dark mode', 'T2 build'))
  await writeFile(place.file('tasks.json'), tasksOf(true, false, false))
  const { boards, until } = watched(place)
  await until(({ current }) => current === 'T2')
  expect(boards).toMatchObject([{ title: 'Dark mode', tasks: [{ id: 'T1', phase: 'Building', done: true }, {}, {}] }])
  await writeFile(place.file('other.md'), 'x')
  await writeFile(place.file('tasks.json'), tasksOf(true, true, false))
  await until(({ current }) => current === 'T3')
  expect(boards).toHaveLength(2)
})

test('while a file is half written, or gone, the board stays as it was', async () => {
  const place = await makeFolder()
  await writeFile(place.file('MAIN.md'), main('Dark mode', 'T1'))
  await writeFile(place.file('tasks.json'), tasksOf(false, false))
  const { boards, until } = watched(place)
  await until(({ tasks }) => tasks.length === 2)
  await writeFile(place.file('tasks.json'), tasksOf(true, false).slice(0, 30))
  await rm(place.file('MAIN.md'))
  // A later change of one that is whole shows that all before it has been seen.
  await writeFile(place.file('new'), main('Night mode', 'T2'))
  await rename(place.file('new'), place.file('MAIN.md'))
  await until(({ title }) => title === 'Night mode')
  expect(boards.every(({ tasks }) => tasks.length === 2)).toBe(true)
  expect(boards.at(-1)).toMatchObject({ current: 'T2', tasks: [{ done: false }, { done: false }] })
})

test('a folder that comes to be later is watched then', async () => {
  const place = await makeFolder()
  await rm(place.folder, { recursive: true })
  const { boards, until } = watched(place)
  await until(({ tasks }) => tasks.length === 0)
  await mkdir(place.folder)
  await writeFile(place.file('tasks.json'), tasksOf(false))
  await until(({ tasks }) => tasks.length === 1)
  expect(boards).toHaveLength(2)
})

test('what the memory says is told without secrets, which are taken out before a text is cut', async () => {
  const place = await makeFolder()
  const token = 'tk_4711_abcDEF'
  const long = `${'x'.repeat(995)}${token} and more`
  await writeFile(place.file('MAIN.md'), main(`Use ${token}`, `${token} T2`))
  const task = { id: 'T1', name: long, phase: `With ${token}`, done: false }
  await writeFile(place.file('tasks.json'), JSON.stringify({ tasks: [task, { id: 'T2', name: token, done: false }] }))
  const board = await readTaskBoard({ ...place, redactor: redactorOf([{ name: 'T', value: token }]) })
  expect(board).toMatchObject({ title: 'Use [secret T]', current: 'T2' })
  expect(board.tasks).toMatchObject([
    { id: 'T1', phase: 'With [secret T]' },
    { id: 'T2', name: '[secret T]' },
  ])
  expect(JSON.stringify(board)).not.toContain(token.slice(0, 4))
})

test('of the tasks alone MAIN.md says nothing, and the first open one is the current one', async () => {
  const place = { ...(await makeFolder()), redactor: nothingSecret }
  await writeFile(place.file('MAIN.md'), main('The whole', 'T2 build'))
  await writeFile(place.file('tasks.json'), tasksOf(false, false))
  expect(await readTaskBoard(place)).toMatchObject({ title: 'The whole', current: 'T2' })
  const tasks = await readTaskBoard(place, 'tasks')
  expect(tasks).toMatchObject({ title: null, current: 'T1' })
  expect(tasks.tasks).toHaveLength(2)
})

test('what lies behind a link is nobody’s board', async () => {
  const place = await makeFolder()
  const real = join(place.directory, 'elsewhere')
  await mkdir(real)
  await writeFile(join(real, 'tasks.json'), tasksOf(false))
  await rm(place.folder, { recursive: true })
  await symlink(real, place.folder)
  expect(await readTaskBoard({ ...place, redactor: nothingSecret })).toEqual({ title: null, tasks: [], current: null })
})

test('the tasks of a session are those of the scope that it is in, and the title stays its own', async () => {
  const place = await makeFolder()
  const steps = join(place.folder, 'steps', 'fix')
  await mkdir(steps, { recursive: true })
  await writeFile(place.file('MAIN.md'), main('The whole', 'T1 build'))
  await writeFile(place.file('tasks.json'), tasksOf(true))
  await writeFile(join(steps, 'MAIN.md'), main('A part', 'T3 mend'))
  await writeFile(join(steps, 'tasks.json'), tasksOf(true, false, false))
  const records = { directory: place.directory, sessionFolder: () => place.directory } as unknown as Records
  let state = foldAll([created()])
  const board = boardPlaceOf(records, SESSION, nothingSecret, () => state)
  const { boards, until } = watched(board)
  await until(({ tasks }) => tasks.length === 1)
  state = foldAll([created(), { type: 'scope-entered', name: 'fix', goal: 'Mend it.', gates: [], tree: 'a' }])
  await until(({ tasks }) => tasks.length === 3)
  expect(boards.at(-1)).toMatchObject({ title: 'The whole', current: 'T3' })
  state = foldAll([created()])
  await until(({ tasks }) => tasks.length === 1 && boards.length > 2)
  expect(boards.at(-1)?.current).toBe(null)
})

test('the tasks of a build are those of its plan, and none are shown before it is known what it is', async () => {
  const place = await makeFolder()
  const plan = join(place.directory, '.codemachine', 'plan')
  await mkdir(plan)
  await writeFile(place.file('tasks.json'), tasksOf(false))
  await writeFile(join(plan, 'tasks.json'), tasksOf(true, false))
  const records = { directory: place.directory, sessionFolder: () => place.directory } as unknown as Records
  const read = async (state: Parameters<typeof boardPlaceOf>[3]) => {
    const board = boardPlaceOf(records, '20261120_1', nothingSecret, state)
    const { tasks } = await readTaskBoard({ ...board, folder: place.folder })
    return tasks.length
  }
  expect(await read(() => ({ id: '20261120_1', kind: buildKind, scope: null }))).toBe(2)
  expect(await read(() => null)).toBe(0)
  expect(await read(() => ({ id: '20261119_9', kind: goalKind, scope: null }))).toBe(0)
  await rm(plan, { recursive: true })
  await symlink(place.folder, plan)
  expect(await read(() => ({ id: '20261120_1', kind: buildKind, scope: null })), 'behind a link').toBe(0)
})
