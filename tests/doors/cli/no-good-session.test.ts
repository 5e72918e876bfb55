import { readFile, writeFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace } from '../../support/place.ts'
import { describe, test } from '../../support/side-by-side.ts'
import { sampleEvents } from '../screen/samples.ts'
import { journalSession, replaceFirstLine } from './journaled.ts'

const { 'session-created': created, 'session-ended': ended } = sampleEvents

describe('where the only journal is of a newer format', () => {
  test.each([[['status']], [['status', '--json']], [['list']], [['logs']], [['logs', '-f']], [['logs', '1']]])(
    '%j says that, and not that there is none',
    async args => {
      await using place = await makePlace('')
      const path = await journalSession(place, '20261120_1', [created, ended])
      await replaceFirstLine(path, '{"format":"codemachine-journal","v":2}')
      const { exitCode, stdout, stderr } = await codemachineHere(place, args)
      const code = args[0] !== 'logs' ? '' : args.length === 2 && args[1] === '1' ? ' (CM0606)' : ' (CM0607)'
      expect(stderr).toBe(
        `codemachine: ${path} was written by a newer codemachine (journal format 2); use that version.${code}\n`,
      )
      expect(stdout).not.toContain('No sessions')
      expect(exitCode).toBe(args[0] === 'logs' ? 2 : 0)
      if (args[0] === 'list') expect(stdout).toMatch(/^No session in .+ can be read\.\n$/)
      if (args.length === 1 && args[0] === 'status') expect(stdout).toContain('No session can be read.\n')
    },
  )
})

describe.each([
  ['is empty', ''],
  ['has only its first line', '{"format":"codemachine-journal","v":1}\n'],
])('a journal that %s', (_what, text) => {
  test.each([[['logs']], [['logs', '-f']], [['logs', '20261120_1']], [['logs', '--json']]])(
    'holds no session, says %j',
    async args => {
      await using place = await makePlace('')
      const path = await journalSession(place, '20261120_1', [])
      await writeFile(path, text)
      const said = `codemachine: ${path} has no session. (CM0607)\n`
      expect(await codemachineHere(place, args)).toMatchObject({ exitCode: 2, stdout: '', stderr: said })
    },
  )

  test('holds no session, says status', async () => {
    await using place = await makePlace('')
    const path = await journalSession(place, '20261120_1', [])
    await writeFile(path, text)
    const { exitCode, stdout, stderr } = await codemachineHere(place, ['status'])
    expect([exitCode, stderr]).toEqual([0, `codemachine: ${path} has no session.\n`])
    expect(stdout).toContain('No session can be read.\n')
  })

  test.each([[['logs']], [['status']]])('does not stand in front of an older session: %j', async args => {
    await using place = await makePlace('')
    await journalSession(place, '20261120_1', [created, ended])
    await writeFile(await journalSession(place, '20261120_2', []), text)
    const { exitCode, stdout, stderr } = await codemachineHere(place, args)
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toContain('20261120_1')
  })
})

test.each([[['status']], [['list']], [['logs']], [['logs', '-f']], [['logs', '--json']]])(
  'lines of a known type with missing fields are passed over by %j',
  async args => {
    await using place = await makePlace('')
    const path = await journalSession(place, '20261120_1', [created])
    const { stdout: before } = await codemachineHere(place, args)
    const withFields = Object.values(sampleEvents).filter(event => Object.keys(event).length > 1)
    const lines = withFields.map(({ type }) => type).filter(type => type !== 'stop-asked')
    const rubbish = lines.map(
      type => `${JSON.stringify({ v: 1, type, at: '2026-11-20T23:00:00.000Z', session: 's' })}\n`,
    )
    const journal = await readFile(path, 'utf8')
    await writeFile(path, journal + rubbish.join(''))
    expect(await codemachineHere(place, args)).toMatchObject({ exitCode: 0, stdout: before, stderr: '' })
  },
)
