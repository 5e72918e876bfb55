import type { EngineKind, EngineKinds } from '../core/engine.ts'
import type { ExternalEngine } from '../core/shapes/external-engine.ts'

/** Runs rounds on the real codex, each on its own app-server: the usual engine. */
const codex: EngineKind = {
  name: 'codex',
  sandbox: 'own',
  can: { steer: true, tools: true, carryOn: true },
  async open(setup) {
    const { CodexEngine } = await import('./codex/engine.ts')
    return new CodexEngine(setup)
  },
}

/** Runs rounds on `codex exec --json`. */
const exec: EngineKind = {
  name: 'exec',
  sandbox: 'own',
  can: { steer: false, tools: false, carryOn: false },
  async open(setup) {
    const { ExecEngine } = await import('./exec/exec-engine.ts')
    return new ExecEngine(setup)
  },
}

/** Plays recordings of rounds, and runs nothing. */
const replay: EngineKind = {
  name: 'replay',
  sandbox: 'none',
  can: { steer: false, tools: false, carryOn: false },
  async open(setup) {
    const { ReplayEngine } = await import('./replay/replay-engine.ts')
    return new ReplayEngine(setup)
  },
}

/** The engines of codemachine. Each is loaded when a run opens. */
export const OWN_ENGINES: EngineKinds = new Map([codex, exec, replay].map(kind => [kind.name, kind]))

/** Returns the engine of an agent in the person's settings: loaded when a run opens, started by its first round. */
export function acpEngine(external: ExternalEngine): EngineKind {
  return {
    name: external.name,
    sandbox: 'own',
    can: { steer: false, tools: true, carryOn: true },
    async open(setup) {
      const { AcpEngine } = await import('./acp/acp-engine.ts')
      return new AcpEngine(external, setup)
    },
  }
}
