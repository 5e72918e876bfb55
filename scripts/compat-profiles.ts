import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { message, reply } from '../src/demo/model/reply.ts'
import { startScriptedModel } from '../src/demo/model/scripted-model.ts'
import { capabilitiesOf } from '../src/engines/codex/find-codex.ts'
import { updateProfiles } from '../src/engines/codex/profiles.ts'
import { execArguments } from '../src/engines/exec/exec-arguments.ts'

// Older versions send the effort only with a model that they know.
const agent = { name: 'frontend-dev', model: 'gpt-5.4', modelReasoningEffort: 'low' }

/**
 * Has a codex of this version work by a profile that was first written for the other form, in a folder of its own below
 * `folder`, and says how that went; throws if the model was not asked for what the profile says.
 */
export async function playProfile(bin: string, version: string, folder: string): Promise<string> {
  const root = await mkdtemp(join(folder, 'profiles-'))
  const [codexHome, directory] = [join(root, 'codex-home'), join(root, 'work')]
  for (const each of [codexHome, directory]) await mkdir(each)
  await using model = await startScriptedModel({ script: () => reply(message('Done.')) })
  await writeFile(join(codexHome, 'config.toml'), model.codexConfig('another-model'))
  const capabilities = capabilitiesOf(version)
  const other = capabilities.profileFiles ? '0.120.0' : '0.134.0'
  for (const codexVersion of [other, version])
    await updateProfiles({ codexHome, codexVersion, agents: [agent], without: [], keepModels: false })
  const args = execArguments(
    {
      agent,
      hasProfile: true,
      directory,
      sandbox: { mode: 'workspace-write', network: false, writable: [] },
      overrides: [],
      forCommands: {},
      shellPolicy: null,
      lastMessage: join(root, 'last'),
      prompt: 'Say that you are done.',
    },
    capabilities,
  )
  await execa(bin, args, { env: { CODEX_HOME: codexHome, HOME: root }, stdin: 'ignore', timeout: 60_000 })
  const [request] = model.requests
  if (request?.model !== agent.model || request.effort !== agent.modelReasoningEffort)
    throw new Error(
      `codex ${version} asked for ${request?.model} with the effort ${request?.effort}, not for what the profile says`,
    )
  return capabilities.profileFiles ? 'NAME.config.toml' : '[profiles.NAME]'
}
