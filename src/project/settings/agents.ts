import { UserError } from '../../base/errors.ts'
import type { AgentTable, AgentTables } from '../../core/shapes/agent.ts'
import type { SettingsFile } from './settings-file.ts'

/**
 * Returns the agents of a settings file, with unchecked prompts. Skips unusable entries of a project's file, which an agent
 * can write. Throws a `UserError` of one sentence for too many in a person's file.
 */
export function agentTables({ layer, name: file, folder, value, placeOf, passedOver }: SettingsFile): AgentTables {
  const wrong = new Set(passedOver.map(({ place }) => place.split('.')[1]))
  const sentences = passedOver.map(({ sentence }) => sentence)
  const { at_once: _setting, ...agents } = value.agents ?? {}
  const tables = Object.entries(agents).flatMap(([name, fields]): AgentTable[] => {
    if (wrong.has(name)) return []
    const places = Object.fromEntries(Object.keys(fields).map(key => [key, placeOf('agents', name, key)]))
    const [place = placeOf('agents', name)] = Object.values(places)
    const { engine, ...others } = fields
    if (layer === 'person') return [{ name, of: layer, place, places, folder, ...fields }]
    if (engine !== undefined) sentences.push(`${places.engine}: a project's file cannot name the engine of an agent.`)
    return [{ name, of: layer, place, places, folder, ...others }]
  })
  const beyond = tables[MOST_AGENTS]
  if (beyond !== undefined) {
    const problem = `${beyond.place}: there are ${tables.length} agents; ${MOST_AGENTS} are the most.`
    if (layer === 'person') throw new UserError('CM0205', problem)
    sentences.push(problem)
  }
  const remarks = sentences.slice(0, MOST_REMARKS).map(sentence => `${sentence} codemachine ignores it.`)
  if (sentences.length > MOST_REMARKS) remarks.push(`${file} has more such mistakes.`)
  return { tables: tables.slice(0, MOST_AGENTS), remarks }
}

/** Most agents of one file. */
const MOST_AGENTS = 50

/** Most reported mistakes of one file. */
const MOST_REMARKS = 20
