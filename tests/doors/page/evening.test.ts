import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { functionCall, reply } from '../../../src/demo/model/reply.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, round, says } from '../../support/rounds.ts'
import { openPage } from './client.ts'
import type { Card } from './evening-scene.ts'

promise('P1', 'A whole evening can be done by phone: start, answer, queue, tell, limits, stop, resume, verify')
promise('E33', 'An evening by phone on the page')
test('a whole evening by phone: start, answer, queue, tell, limits, stop, resume, verify', async () => {
  const [answered, told] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await using scene = await openRealScene([
    round('echo one > one.txt'),
    round(claimDone),
    [
      reply(functionCall('ask_person', { question: 'Which?', options: ['red', 'blue'], assumption: 'red' })),
      held(answered.promise),
      held(told.promise),
      says('Went on.'),
    ],
    round('echo two > two.txt'),
    round(claimDone),
    round('echo three > three.txt'),
    round(claimDone),
  ])
  await writeFile(join(scene.place.directory, 'zero.txt'), '0\n')
  // The directory is known once a session has run there.
  expect((await scene.run('make one')).exitCode).toBe(0)
  const page = await openPage(scene)
  const now = await page.follow('now')
  const card = async (matches: (card: Card) => boolean): Promise<Card> => {
    const { data } = await now.until(each => (each.data.cards as Card[]).some(matches))
    return (data.cards as Card[]).find(matches) as Card
  }
  const first = await card(({ outcome }) => outcome?.kind === 'done')

  // Start.
  const { body: places } = await page.get('places')
  expect(places).toMatchObject({ places: [{ directory: scene.place.directory, isRunning: false }] })
  const { place } = first
  expect((await page.get(`places/${place}/files?q=zer`)).body).toEqual({ files: ['zero.txt'] })
  const begun = await page.post('start', { place, goal: 'make two', gates: ['true'], limits: { rounds: 2 } })
  expect(begun).toMatchObject({ status: 200, body: { session: expect.stringMatching(/_2$/) } })
  const id = String(begun.body.session)
  const session = `sessions/${place}/${id}`
  expect(await page.post('start', { place, goal: 'make three' })).toMatchObject({ status: 409 })

  // Answer.
  await card(each => each.id === id && each.questions.length === 1)
  expect(await page.post(`${session}/answer`, { question: 'Q1', answer: 'blue' })).toMatchObject({ status: 200 })
  answered.resolve()

  // Queue: add, edit, order, remove.
  const add = async (prompt: string) => {
    const { body } = await page.post(`places/${place}/queue/add`, { prompt, limits: { rounds: 2 } })
    return String(body.id)
  }
  const [three, four, five] = [await add('make three'), await add('make four'), await add('make five')]
  await page.post(`places/${place}/queue/edit`, { id: four, prompt: 'make 4' })
  await page.post(`places/${place}/queue/move`, { id: five, before: three })
  await page.post(`places/${place}/queue/remove`, { id: four })
  expect((await page.get(`places/${place}/queue`)).body).toMatchObject({ prompts: [{ id: five }, { id: three }] })
  await page.post(`places/${place}/queue/remove`, { id: five })

  // Tell, limits, stop.
  const stream = await page.follow(`${session}/stream`)
  await stream.until(({ event }) => event === 'begin')
  expect(await page.post(`${session}/ask`, { type: 'steer', text: 'mind the gap' })).toMatchObject({
    body: { code: expect.stringMatching(/done|kept/) },
  })
  expect(await page.post(`${session}/ask`, { type: 'limits', rounds: 7 })).toMatchObject({
    body: { code: 'done', message: `${id} may take 7 rounds in total, from the next round on.` },
  })
  expect(await page.post(`${session}/ask`, { type: 'stop', now: false })).toMatchObject({ body: { code: 'done' } })
  told.resolve()
  await stream.until(({ event }) => event === 'ended')
  await card(each => each.id === id && each.outcome !== null)

  // Resume: it is done then, and what waits has its turn.
  expect(await page.post(`${session}/resume`, { rounds: 9 })).toMatchObject({ status: 200, body: { session: id } })
  await card(each => each.id === id && each.outcome?.kind === 'done')
  await card(each => each.id.endsWith('_3') && each.outcome?.kind === 'done')

  // What was done: changes, rounds, proof, report, and whether it is still true.
  const { body: changes } = await page.get(`${session}/changes`)
  expect(changes).toMatchObject({
    files: expect.arrayContaining([expect.objectContaining({ path: 'two.txt', added: 1 })]),
  })
  expect((await page.get(`${session}/changes/file?path=two.txt`)).body).toMatchObject({
    lines: expect.arrayContaining([expect.objectContaining({ kind: 'added', text: 'two' })]),
  })
  const { body: rounds } = await page.get(`${session}/rounds?from=0&count=1`)
  expect(rounds).toMatchObject({ rounds: [{ round: 1 }] })
  expect(JSON.parse(String((await page.get(`${session}/certificate`)).body.text))).toMatchObject({ session: id })
  const { body: ticket } = await page.get(`${session}/report-ticket`)
  const report = await fetch(new URL(String(ticket.path), page.address))
  expect([report.status, await report.text()]).toEqual([200, expect.stringMatching(/Done, gates pass[\s\S]*make two/)])
  expect(report.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect((await fetch(new URL(String(ticket.path), page.address))).status).toBe(404)
  const verifying = await page.postStream(`${session}/verify`, {})
  expect(await verifying.until(({ event }) => event === 'verified')).toMatchObject({
    data: { verdict: 'still-true', words: expect.arrayContaining(['still true']) },
  })

  // And back again.
  const { body: plan } = await page.post(`${session}/rewind`, { to: `${id}/start`, go: false })
  expect(plan).toMatchObject({ undo: null, words: [expect.stringContaining('removed')] })
  const { body: rewound } = await page.post(`${session}/rewind`, { to: `${id}/start`, go: true })
  expect(rewound.undo).toEqual(expect.stringMatching(/\w/))
  expect(existsSync(join(scene.place.directory, 'two.txt'))).toBe(false)
})
