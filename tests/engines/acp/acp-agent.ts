import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { ExternalEngine } from '../../../src/core/shapes/external-engine.ts'

/** The command of the scripted agent; `fault`: how it misbehaves. */
export function agentCommand(url: string, fault = ''): [string, ...string[]] {
  const file = fileURLToPath(new URL('../../support/acp-agent.ts', import.meta.url))
  return [realpathSync(process.execPath), '--no-warnings', file, ...[url, fault].filter(text => text !== '')]
}

/** The scripted agent as the settings would name it. */
export function scriptedAgent(url: string, fault = '', more: Partial<ExternalEngine> = {}): ExternalEngine {
  return {
    name: 'mine',
    command: agentCommand(url, fault),
    home: [],
    configuration: [],
    env: {},
    boxEnv: {},
    modes: [],
    network: ['127.0.0.1'],
    ...more,
  }
}
