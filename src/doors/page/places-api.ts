import { join } from 'node:path'
import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import { withoutUndefined } from '../../base/json.ts'
import { OpenProject } from '../../project/open-project.ts'
import { settingsOf } from '../../project/open-run.ts'
import { redactorOfProject } from '../../project/secrets/redactor.ts'
import { type StartingWorld, startQueue, startSession } from '../../project/start/detached.ts'
import { lookAtSpecification } from '../../project/start/dry-run.ts'
import { problemOfTemplate, startableTemplates, templateNamed } from '../../project/start/templates.ts'
import type { SessionCard } from '../../project/watch/cards.ts'
import type { World } from '../../project/world.ts'
import { openQueue } from '../../session/records/queue.ts'
import { type Records, recordsOf, repositoryOfCopy } from '../../session/records/records.ts'
import { askWhoRuns } from '../../session/records/run-lock.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { type FileIndex, openFileIndex } from '../../workspace/files/search.ts'
import type { WebEnv } from './guard.ts'
import { bodyOf, name, terms, text } from './requests.ts'

interface PlacesApiOptions {
  world: World & StartingWorld
  /** All sessions that are known: their directories are those that something can be begun in. */
  cards(): readonly SessionCard[]
  /** Has all sessions been read. */
  whole(): Promise<void>
}

const startSchema = v.strictObject({
  ...terms,
  place: name,
  goal: v.nullable(text),
  worktree: v.optional(v.union([v.literal(true), v.pipe(v.string(), v.minLength(1), v.maxLength(100))])),
  acceptsPlan: v.optional(v.boolean()),
  follows: v.optional(name),
})
const addSchema = v.strictObject({ ...terms, prompt: text, follows: v.optional(name) })
const editSchema = v.strictObject({ id: name, prompt: text })
const moveSchema = v.strictObject({ id: name, before: v.nullable(name) })
const removeSchema = v.strictObject({ id: name })
const nothing = v.strictObject({})

const MOST_FILES = 20
/** Of a queue so many prompts are shown, and so much of each: the whole text of one is read when it is edited. */
const MOST_PROMPTS = 1_000
const PROMPT_CHARS = 300
/** Of so many directories the names of files are kept for searching. */
const MOST_INDEXES = 4

/** The directories that a person has worked in, their queues, and what is begun in them. */
export function placesRoutes({ world, cards, whole }: PlacesApiOptions): Hono<WebEnv> {
  const routes = new Hono<WebEnv>()
  const indexes = new Map<string, FileIndex>()
  const recordsAt = async (place: string | undefined): Promise<Records> => {
    await whole()
    const found = cards().find(({ row }) => row.records.key === place && row.records.directory !== '')
    if (found === undefined)
      throw new UserError('CM0808', 'codemachine knows no session in that directory, or the directory was deleted.')
    return found.row.records
  }
  const at = (c: Context<WebEnv>) => recordsAt(c.req.param('place'))

  routes.get('/places', async c => {
    await whole()
    const places = new Map<string, SessionCard>()
    for (const card of cards()) {
      const { key, directory } = card.row.records
      const canBegin = directory !== '' && repositoryOfCopy(card.row.records) === null
      if (canBegin && !places.has(key)) places.set(key, card)
    }
    const shown = [...places].map(([place, { row, queued }]) => {
      return { place, directory: row.records.directory, isRunning: row.standing === 'running', queued }
    })
    return c.json({ places: shown, templates: templatesShown(world) })
  })
  routes.post('/start', async c => {
    const { place, ...wanted } = await bodyOf(c, startSchema)
    const records = await recordsAt(place)
    const { worktree } = wanted
    if (worktree === undefined && (await askWhoRuns(records.lock, world.platform, () => {})) !== null)
      return c.json(
        { problem: 'A session is already running there.', code: 'CM0601', hint: 'Add this one to the queue.' },
        409,
      )
    const started = await startSession(world, records, { ...withoutUndefined(wanted), goal: wanted.goal }, world.signal)
    // A worktree has records of its own.
    return c.json({ ...started, place: recordsOf(records, started.directory).key })
  })
  routes.get('/places/:place/specification', async c => {
    const records = await at(c)
    const { directory } = records
    const { settings, agentTables } = await settingsOf(world, directory, {})
    const template = templateNamed(world.templates, c.req.query('template') ?? settings.mode, 'start')
    const { path, title, text: said } = await lookAtSpecification(directory, template, { agentTables })
    const redactor = redactorOfProject(world, records)
    return c.json({ path, title: redactor.text(title), text: redactor.text(said) })
  })
  routes.get('/places/:place/files', async c => {
    const records = await at(c)
    const redactor = redactorOfProject(world, records)
    const files = await indexOf(records).search((c.req.query('q') ?? '').slice(0, 500), MOST_FILES)
    return c.json({ files: files.map(each => redactor.text(each)) })
  })
  addQueue(routes, world, at)
  return routes

  function indexOf({ key, directory, folder }: Records): FileIndex {
    const known = indexes.get(key)
    if (known !== undefined) return known
    const [oldest] = indexes.keys()
    if (indexes.size >= MOST_INDEXES && oldest !== undefined) indexes.delete(oldest)
    const index = openFileIndex({ directory, gitDir: join(folder, 'files'), env: world.env, clock: world.clock })
    indexes.set(key, index)
    return index
  }
}

/** What waits there, in its order. */
function addQueue(
  routes: Hono<WebEnv>,
  world: PlacesApiOptions['world'],
  at: (c: Context<WebEnv>) => Promise<Records>,
): void {
  const queueAt = async (c: Context<WebEnv>) =>
    (await OpenProject.open(world, { directory: (await at(c)).directory })).queue
  routes.get('/places/:place/queue', async c => {
    const records = await at(c)
    const redactor = redactorOfProject(world, records)
    const queue = openQueue(records.queue)
    const [{ prompts, problems }, count] = await Promise.all([queue.list(MOST_PROMPTS), queue.count()])
    const shown = prompts.map(({ options: _, ...each }) => {
      return redactor.event({ ...each, prompt: oneLine(redactor.text(each.prompt), PROMPT_CHARS) })
    })
    return c.json({ prompts: shown, problems, count })
  })
  routes.get('/places/:place/queue/:id', async c => {
    const records = await at(c)
    const id = c.req.param('id')
    const found = await openQueue(records.queue).peek(each => each.id === id)
    if (found === null) throw new UserError('CM0808', `The prompt ${oneLine(id, 40)} is no longer queued.`)
    return c.json({ prompt: redactorOfProject(world, records).text(found.prompt) })
  })
  routes.post('/places/:place/queue/add', async c => {
    const { prompt, ...wanted } = await bodyOf(c, addSchema)
    const { id } = await (await queueAt(c)).add(prompt, withoutUndefined(wanted))
    return c.json({ id })
  })
  routes.post('/places/:place/queue/edit', async c => {
    const { id, prompt } = await bodyOf(c, editSchema)
    await (await queueAt(c)).edit(id, prompt)
    return c.json({ id })
  })
  routes.post('/places/:place/queue/move', async c => {
    const { id, before } = await bodyOf(c, moveSchema)
    await (await queueAt(c)).move(id, before)
    return c.json({ id })
  })
  routes.post('/places/:place/queue/remove', async c => {
    const { id } = await bodyOf(c, removeSchema)
    await (await queueAt(c)).remove(id)
    return c.json({ id })
  })
  routes.post('/places/:place/queue/run', async c => {
    await bodyOf(c, nothing)
    return c.json(await startQueue(world, await at(c), world.signal))
  })
}

/** The templates that a person begins by a prompt or a specification. */
function templatesShown({ templates }: Pick<World, 'templates'>): object[] {
  const startable = new Set(startableTemplates(templates))
  return [...templates.values()].flatMap(kind => {
    const takes = [
      ...(problemOfTemplate(templates, kind.name) === null ? ['prompt'] : []),
      ...(startable.has(kind) ? ['specification'] : []),
    ]
    return takes.length === 0 ? [] : [{ name: kind.name, description: kind.description, takes }]
  })
}
