import { acpEngine } from '../../../src/engines/registry.ts'
import { realCodex, testEngine } from '../contract.ts'
import { scriptedAgent } from './acp-agent.ts'

testEngine({ name: 'acp', can: { steer: false, tools: true, carryOn: true } }, async (act, atEnd) => {
  const { setup, place, model } = await realCodex(act, atEnd)
  return { engine: await acpEngine(scriptedAgent(model.url)).open(setup), place }
})
