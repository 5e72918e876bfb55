import { appendFile, mkdir, readdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { keepSavepoint } from '../../support/kept-savepoints.ts'
import { promise } from '../../support/promise.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'
import { send, serveApi, type Told } from './client.ts'

const created = sampleEvents['session-created']
const started = sampleEvents['round-started']
const ended = sampleEvents['session-ended']

test('a link gives a device its key once; with that it sees the sessions of every directory as they change', async () => {
  const { place, access, post, follow } = await serveApi()
  await place.journal('20261120_1', [{ ...created, goal: 'mend the door' }, started, ended])
  const token = await access.newLink('look')
  const opened = await post('enter', { token, name: 'phone' })
  expect(opened).toMatchObject({ status: 200, body: { device: { name: 'phone', right: 'look' } } })
  expect(await post('enter', { token, name: 'thief' })).toMatchObject({ status: 403 })
  const stream = await follow('now', String(opened.body.key))
  const cards = ({ data }: Told) => data.cards as { goal: string; directory: string; standing: string }[]
  const first = await stream.until(each => cards(each).length === 1)
  expect(cards(first)).toMatchObject([{ goal: 'mend the door', directory: place.directory, standing: 'ended' }])
  await place.journal('20261120_2', [{ ...created, goal: 'oil the hinges' }, started])
  const second = await stream.until(each => cards(each).length === 2)
  expect(cards(second)).toMatchObject([{ goal: 'oil the hinges', standing: 'cut-off' }, { goal: 'mend the door' }])
})

test('a link that a device makes leads to the name that the page is opened by', async () => {
  const { access, post } = await serveApi({ names: ['mac.lan', 'mac.tailnet.ts.net'] })
  const [address, token = ''] = String((await post('link', { right: 'look' })).body.link).split('#t=')
  expect(address).toBe('https://mac.lan/')
  expect(await access.openLink(token, 'phone')).toMatchObject({ device: { right: 'look' } })
  const { post: unnamed, port } = await serveApi()
  expect((await unnamed('link', { right: 'look' })).body.link).toContain(`http://127.0.0.1:${port}/#t=`)
})

promise('P7', 'A stream that was cut goes on where it stopped')
test('a stream that was cut goes on where it stopped', async () => {
  const { place, follow } = await serveApi()
  const path = await place.journal('20261120_1', [created, started])
  const now = await follow('now')
  await now.until(({ data }) => (data.cards as unknown[]).length === 1)
  const session = `sessions/${place.records.key}/20261120_1/stream`
  const first = await follow(session)
  const begin = await first.until(({ event }) => event === 'begin')
  expect(begin).toMatchObject({ id: '2', data: { n: 2, standing: 'cut-off', rows: [{ n: 1 }, { n: 2, round: 1 }] } })
  first.leave()
  await first.over
  const more = recorded([created, started, sampleEvents.warning, sampleEvents.warning], '20261120_1').slice(2)
  await appendFile(path, more.map(event => `${JSON.stringify(event)}\n`).join(''))
  const again = await follow(`${session}?after=3`)
  const told = await again.until(({ id }) => id === '4')
  expect(told.data).toMatchObject({ n: 4 })
  expect(again.told.every(({ data }) => (data.n as number) > 3 || data.kind === 'begin')).toBe(true)
})

promise('P6', 'A device that is ended has its streams ended at once')
test('a device that is ended has its streams ended at once, and those of others go on', async () => {
  const { access, post, follow, key } = await serveApi()
  const other = await access.add('lost phone', 'look')
  const [mine, lost] = [await follow('now'), await follow('now', other.key)]
  await mine.until(() => true)
  await lost.until(() => true)
  expect(await post(`devices/${other.device.id}/end`, {}, key)).toMatchObject({ status: 200 })
  await lost.over
  expect(await Promise.race([mine.over.then(() => 'over'), Promise.resolve('goes on')])).toBe('goes on')
  expect((await follow('now', other.key)).status).toBe(401)
})

promise('P12', 'A device that is ended does not come back by links or codes of its own')
test('a device that is ended does not come back: not by a link that it has made, nor by a code that it shows', async () => {
  const { access, place, post, postStream } = await serveApi()
  const links = join(place.records.root, 'web', 'links')
  const begun = async () => {
    const lost = await access.add('lost phone', 'steer')
    const { link } = (await post('link', { right: 'steer' }, lost.key)).body
    const { code } = (await post('pairing', {}, lost.key)).body
    const tokenOf = (from: unknown) => String(from).split('#t=')[1]
    return { id: lost.device.id, token: tokenOf(link), code }
  }
  const mine = (await post('link', { right: 'look' })).body.link as string
  const [here, elsewhere] = [await begun(), await begun()]
  expect(await readdir(links)).toHaveLength(3)
  expect(await post(`devices/${here.id}/end`, {})).toMatchObject({ status: 200 })
  // As `codemachine web end` does, in another process.
  expect(await access.end(elsewhere.id)).toBe(true)
  expect(await readdir(links)).toHaveLength(1)
  for (const { token, code } of [here, elsewhere]) {
    expect(await post('enter', { token, name: 'it again' })).toMatchObject({ status: 403, body: { code: 'CM0805' } })
    const asking = await postStream('pair', { code, name: 'it again' })
    await asking.over
    expect(asking.told.at(-1)?.data).toMatchObject({
      problem: expect.stringMatching(/No device shows this code|not paired/),
    })
  }
  expect(await post('enter', { token: mine.split('#t=')[1], name: 'tablet' })).toMatchObject({ status: 200 })
})

promise('P15', 'Who only looks makes no files in the project')
test('who looks at a specification makes nothing in the directory, and reads no secret in it', async () => {
  const { place, access, post, get, follow } = await serveApi()
  await place.journal('20261120_1', [created, started, ended])
  const now = await follow('now')
  await now.until(({ data }) => (data.cards as unknown[]).length === 1)
  const looks = (await access.add('tablet', 'look')).key
  const read = () => get(`places/${place.records.key}/specification`, looks)
  const before = await readdir(place.directory)
  const file = join('.codemachine', 'inputs', 'specifications.md')
  expect(await read()).toMatchObject({
    status: 400,
    body: { problem: expect.stringMatching(/\.md does not exist; write/), code: 'CM0207' },
  })
  expect(await readdir(place.directory)).toEqual(before)
  await mkdir(join(place.directory, '.codemachine', 'inputs'), { recursive: true })
  await writeFile(join(place.directory, file), '# A shop\n\nPays with sk-live-4711-4711-4711.\n')
  const secret = { key: 'PAY_KEY', value: 'sk-live-4711-4711-4711' }
  expect(await post(`sessions/${place.records.key}/20261120_1/secret`, secret)).toMatchObject({ status: 200 })
  const { status, body } = await read()
  expect([status, body.title]).toEqual([200, 'A shop'])
  expect(body.text).toMatch(/^# A shop\n\nPays with /)
  expect(body.text).not.toContain('4711')
  expect(await readdir(join(place.directory, '.codemachine'), { recursive: true })).toEqual([
    'inputs',
    join('inputs', 'specifications.md'),
  ])
})

test('what a session has changed is shown without the secrets of the project, in names and lines', async () => {
  const { place, post, get, follow } = await serveApi()
  const { directory, records, context } = place
  context.env.PATH = process.env.PATH
  const id = '20261120_1'
  await place.journal(id, [created, started, ended])
  const now = await follow('now')
  await now.until(({ data }) => (data.cards as unknown[]).length === 1)
  const session = `sessions/${records.key}/${id}`
  const secret = { key: 'PAY_KEY', value: 'sk-live-4711-4711-4711' }
  expect(await post(`${session}/secret`, secret)).toMatchObject({ status: 200 })
  const at = { directory, home: context.home, env: context.env as Record<string, string> }
  await writeFile(join(directory, 'shop.txt'), 'pays\n')
  await keepSavepoint(at, 0, { session: id })
  await writeFile(join(directory, 'shop.txt'), `pays\nwith ${secret.value}\n`)
  await writeFile(join(directory, `${secret.value}.txt`), 'named so\n')
  await keepSavepoint(at, 1, { session: id })
  const { status, body } = await get(`${session}/changes`)
  expect([status, JSON.stringify(body)]).toEqual([200, expect.stringContaining('shop.txt')])
  expect(JSON.stringify(body)).not.toContain('4711')
  expect((await get(`${session}/changes/file?path=shop.txt`)).body).toMatchObject({
    lines: expect.arrayContaining([expect.objectContaining({ kind: 'added', text: 'with [secret PAY_KEY]' })]),
  })
})

promise(
  'P14',
  'A secret is taken only over a connection that is local or encrypted; behind a proxy nothing is written without https',
)
test('a secret is taken from this machine, or from a page that was opened by https, and from no other one', async () => {
  const { place, key, port, follow } = await serveApi({ names: ['mac.lan'] })
  await place.journal('20261120_1', [created, started, ended])
  const now = await follow('now')
  await now.until(({ data }) => (data.cards as unknown[]).length === 1)
  const give = async (headers: Record<string, string>) => {
    const json = { 'content-type': 'application/json', 'x-codemachine': '1', authorization: `Bearer ${key}` }
    const body = JSON.stringify({ key: 'PAY_KEY', value: 'sk-live-4711-4711-4711' })
    const path = `/api/sessions/${place.records.key}/20261120_1/secret`
    return (await send(port, path, { method: 'POST', headers: { ...json, ...headers }, body })).status
  }
  const here = `127.0.0.1:${port}`
  expect(await give({ host: 'mac.lan', origin: 'http://mac.lan' })).toBe(403)
  expect(await give({ host: 'mac.lan' })).toBe(403)
  expect(await give({ host: here, 'x-forwarded-for': '192.168.1.7' })).toBe(403)
  expect(await give({ host: 'mac.lan', origin: 'https://mac.lan', 'x-forwarded-for': '100.64.0.7' })).toBe(200)
  expect(await give({ host: here, origin: `http://${here}` })).toBe(200)
})

test('what is asked in a wrong way gets a sentence, and changes nothing', async () => {
  const { place, post, get, follow, key } = await serveApi()
  await place.journal('20261120_1', [created, started, ended])
  const now = await follow('now')
  await now.until(({ data }) => (data.cards as unknown[]).length === 1)
  const session = `sessions/${place.records.key}/20261120_1`
  expect(await post(`${session}/ask`, { type: 'stop' }, key)).toMatchObject({
    status: 400,
    body: { problem: expect.stringContaining('now') },
  })
  expect(await post(`${session}/ask`, { type: 'erase' }, key)).toMatchObject({ status: 400 })
  expect(await post(`${session}/ask`, { type: 'steer', text: ' ' }, key)).toMatchObject({ status: 400 })
  expect(await post(`${session}/ask`, { type: 'pause' }, key)).toMatchObject({ body: { code: 'no-session' } })
  expect(await post(`${session}/answer`, { question: 'Q9', answer: 'yes' }, key)).toMatchObject({ status: 404 })
  expect(await post('sessions/..%2f..%2fx/20261120_1/ask', { type: 'pause' }, key)).toMatchObject({ status: 400 })
  expect(await get(`places/${session.split('/')[1]}/queue`, key)).toMatchObject({ status: 200, body: { prompts: [] } })
  expect(await get('nothing', key)).toMatchObject({ status: 404 })
})

test('where nothing has been run yet that is said at once', async () => {
  const { get } = await serveApi()
  expect(await get('places')).toMatchObject({ status: 200, body: { places: [] } })
})

test('what is asked of a session never reaches the one that has come to run in its place', async () => {
  const { place, post, follow } = await serveApi()
  await place.journal('20261120_1', [created, started, ended])
  await place.journal('20261120_2', [{ ...created, goal: 'the next' }, started])
  const { lock, directory, key } = place.records
  const { platform, pid } = process
  await using _ = await takeRunLock(lock, { platform, pid, now: new Date('2026-11-01T00:00:00Z'), directory })
  const now = await follow('now')
  await now.until(({ data }) => (data.cards as unknown[]).length === 2)
  expect(await post(`sessions/${key}/20261120_1/ask`, { type: 'stop', now: true })).toMatchObject({
    body: { code: 'other-session', message: '20261120_2 runs now, not 20261120_1.' },
  })
})

test('records that cannot be read for a while are looked at again, and streams say so', async () => {
  const { place, problems, follow } = await serveApi()
  await place.journal('20261120_1', [created, started])
  const now = await follow('now')
  const count = ({ data }: Told) => (data.cards as unknown[]).length
  await now.until(each => count(each) === 1)
  const state = join(place.records.root, 'state')
  await rename(state, `${state}.away`)
  await writeFile(state, 'no folder')
  const stream = await follow(`sessions/${place.records.key}/20261120_1/stream`)
  await stream.until(({ event }) => event === 'problem' || event === 'gone')
  await expect.poll(() => problems.join(), { timeout: 60_000 }).toContain('cannot be read now')
  await rename(state, `${state}.file`)
  await rename(`${state}.away`, state)
  await place.journal('20261120_2', [created, started])
  await now.until(each => count(each) === 2)
})
