import { expect, test } from 'vitest'
import { emptyState } from '../../../src/core/state/state.ts'
import { jsonView } from '../../../src/doors/cli/output.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'

test('each event is one line, the same as in the journal; deltas are not printed', () => {
  const lines: string[] = []
  const view = jsonView(text => lines.push(text))
  const events = recorded(Object.values(sampleEvents))
  for (const event of events) view.event(event, emptyState('20261120_1'))
  view.live({ type: 'text-delta', round: 1, item: 'm1', source: 'agent-message', text: 'All' })
  expect(lines).toEqual(events.map(event => `${JSON.stringify(event)}\n`))
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ v: 1, session: '20261120_1', type: 'session-created' })
})
