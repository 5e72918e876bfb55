import type { EngineKind, EngineKinds } from '../core/engine.ts'
import type { ExternalEngine } from '../core/shapes/external-engine.ts'

/** Rounds on the real codex, each on an app-server of its own: the usual engine. */
const codex: EngineKind = {
  name: 'codex',
  sandbox: 'own',
  can: { steer: true, tools: true, carryOn: true },
  async open(setup) {
    const { CodexEngine } = await import('./codex/engine.ts')
    return new CodexEngine(setup)
  },
}

/** Rounds on `codex exec --json`. */
const exec: EngineKind = {
  name: 'exec',
  sandbox: 'own',
  can: { steer: false, tools: false, carryOn: false },
  async open(setup) {
    const { ExecEngine } = await import('./exec/exec-engine.ts')
    return new ExecEngine(setup)
  },
}

/** Recordings of rounds, of which nothing is run. */
const replay: EngineKind = {
  name: 'replay',
  sandbox: 'none',
  can: { steer: false, tools: false, carryOn: false },
  async open(setup) {
    const { ReplayEngine } = await import('./replay/replay-engine.ts')
    return new ReplayEngine(setup)
  },
}

/** The engines that come with codemachine. Each is loaded when a run is opened. */
export const OWN_ENGINES: EngineKinds = new Map([codex, exec, replay].map(kind => [kind.name, kind]))

/** The kind of an agent that the person's settings name: it is started by its first round, and loaded when a run is opened. */
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
