import { makePlace } from '../support/place.ts'
import { writePeer } from '../support/scripted-peer.ts'
import { type Act, engineNamed, FAULTS, type Fault, setupIn, testEngine } from './contract.ts'

const kind = engineNamed('codex')

// Such a peer speaks codex's protocol, in words that the real one may use one day.
testEngine({ ...kind, name: 'a scripted peer' }, async (act, atEnd) => {
  const place = atEnd.use(await makePlace(''))
  const path = await writePeer(place.root, peerThat(act))
  return { engine: await kind.open(await setupIn(place, { binary: { path, version: '0.169.0' } })), place }
})

const ITEM = `
  const item = (method, more) => say(method, { threadId: THREAD, turnId: TURN, item: { id: 'c', ...more } })
  const command = { type: 'commandExecution', command: 'echo hi', cwd: '/', commandActions: [], aggregatedOutput: null }
  const tokens = { totalTokens: 3, inputTokens: 2, cachedInputTokens: 0, outputTokens: 1, reasoningOutputTokens: 0 }
  const done = () => {
    message('Done.')
    say('thread/tokenUsage/updated', { threadId: THREAD, turnId: TURN, tokenUsage: { total: tokens, last: tokens, modelContextWindow: null } })
    completed()
  }
`

function peerThat(act: Act): string {
  switch (act) {
    case 'works':
      return `${ITEM} let turns = 0
      on['turn/start'] = id => {
        const turn = { id: TURN + ++turns, status: 'inProgress', error: null, items: [] }
        send({ id, result: { turn } }); say('turn/started', { threadId: THREAD, turn })
        item('item/completed', { ...command, status: 'completed', exitCode: 0, aggregatedOutput: 'hi\\n' })
        message('Done.')
        say('thread/tokenUsage/updated', { threadId: THREAD, turnId: turn.id, tokenUsage: { total: tokens, last: tokens, modelContextWindow: null } })
        say('turn/completed', { threadId: THREAD, turn: { ...turn, status: 'completed' } })
      }`
    case 'hangs':
      return `${ITEM} on['turn/start'] = id => {
        send({ id, result: { turn: { id: TURN } } }); started()
        item('item/started', { ...command, status: 'inProgress' })
      }`
    case 'calls a tool':
      return `${ITEM} on['turn/start'] = id => {
        send({ id, result: { turn: { id: TURN } } }); started()
        send({ id: 7, method: 'item/tool/call', params: { threadId: THREAD, turnId: TURN, callId: 'c', tool: 'weigh', arguments: { thing: 'a stone' } } })
      }
      on.answer = done`
    default:
      return `${ITEM} let turns = 0
      on['turn/start'] = id => {
        send({ id, result: { turn: { id: TURN } } }); turns++
        say('turn/started', { threadId: THREAD, turn: { id: TURN + turns, status: 'inProgress', items: [] } })
        const error = turns === 1 ? ${JSON.stringify(errorOf(act))} : null
        say('turn/completed', { threadId: THREAD, turn: { id: TURN + turns, status: error ? 'failed' : 'completed', error, items: [] } })
      }`
  }
}

/** Codex's error of a turn that ends as the class of the fault. */
function errorOf(fault: Fault): object {
  const names: Record<Fault, string> = {
    'loses the network': 'somethingNew',
    'is over the limit': 'usageLimitExceeded',
    'is not logged in': 'unauthorized',
    'is full': 'contextWindowExceeded',
    'has no such model': 'modelNotFound',
  }
  return { message: `It ${fault}: ${FAULTS[fault].class}.`, codexErrorInfo: names[fault], additionalDetails: null }
}
