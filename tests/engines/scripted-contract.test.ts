import { roundsScript } from '../../src/demo/model/reply.ts'
import { makePlace } from '../support/place.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { saysFor, setupIn, testEngine } from './contract.ts'

const NAME = 'scripted'
const can = { steer: true, tools: true, carryOn: true }

testEngine({ name: NAME, can }, async (act, atEnd) => {
  const { kind } = scriptedEngine({ name: NAME, script: roundsScript([saysFor(act)]) })
  const place = atEnd.use(await makePlace(''))
  return { engine: await kind.open(await setupIn(place)), place }
})
