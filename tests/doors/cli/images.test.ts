import { symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32, deflateSync } from 'node:zlib'
import { expect } from 'vitest'
import { type ModelRequest, message, reply } from '../../../src/demo/model/reply.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round, says } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { hold } from '../../support/scripted-model.ts'
import { test } from '../../support/side-by-side.ts'

promise(
  'O104',
  'A picture that a goal or what is told names is sent to the model beside the text, in each round; one that is too large, behind a link or outside is left out with one warning, and nothing of it is read',
)
promise('E27', 'A picture that a goal names is sent to the model')
test('a picture that a goal names is sent to the model beside it, in each round', async () => {
  await using scene = await openRealScene([[says('Not yet.')], round(claimDone)])
  const { directory } = scene.place
  await writeFile(join(directory, 'my shot.png'), png())
  await writeFile(join(directory, 'large.png'), png())
  await truncate(join(directory, 'large.png'), 50 * 1024 * 1024)
  await writeFile(join(scene.place.home, 'theirs.png'), png())
  await symlink(join(scene.place.home, 'theirs.png'), join(directory, 'link.png'))
  const goal = 'make it look like @"my shot.png", not like @large.png or @link.png'
  const { exitCode, events } = await scene.run('--json', '--rounds', '3', goal)
  expect(exitCode).toBe(0)
  const firsts = scene.model.requests.filter(({ step }) => step === 0)
  expect(firsts.map(imagesIn)).toEqual([1, 1])
  const warnings = eventsOf(events, 'warning').filter(({ message }) => message.includes('picture'))
  expect(warnings.map(({ round, message }) => [round, message])).toEqual([
    [
      1,
      'Not sent as a picture, only named in the text: large.png (larger than 20 MiB), link.png (a link, or no readable file).',
    ],
  ])
})

promise('O104')
test('a picture is sent to the running turn with what it is told; one that is broken ends no round', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[reply(message('Working.'), hold(gate.promise)), ...round(claimDone)]])
  await writeFile(join(scene.place.directory, 'shot.png'), png())
  await writeFile(join(scene.place.directory, 'broken.png'), png().subarray(0, 20))
  await using running = scene.start('--json', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  await scene.run('steer', 'like @shot.png and @broken.png')
  gate.resolve()
  const { events } = await running.ended
  expect(eventsOf(events, 'round-ended')[0]?.outcome.class).toBe('worked')
  const [first, second] = scene.model.requests
  expect([first && imagesIn(first), second && imagesIn(second)]).toEqual([0, 1])
})

/** How many pictures the messages of a person in a request hold. */
function imagesIn({ body }: ModelRequest): number {
  return JSON.stringify(body.input).split('"type":"input_image","image_url":"data:image/png;base64,').length - 1
}

/** A picture of one grey point. */
function png(): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data])
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(body))
    return Buffer.concat([length, body, sum])
  }
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0])
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.from([0, 128]))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}
