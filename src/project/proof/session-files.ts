import { join } from 'node:path'
import { globsLookedAt } from '../../core/rules/proof/gate-files.ts'
import type { FolderFiles, Memory, PersonsFiles, ScopeFiles } from '../../core/shapes/memory.ts'
import { gatesOfAll, withoutScope } from '../../core/state/scope.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { WorkTree } from '../../session/options.ts'
import type { SessionLog } from '../../session/session-log.ts'
import { lookBySessionRules } from '../../workspace/fingerprint/session-rules.ts'
import { readHead } from '../../workspace/git/git.ts'
import type { SessionFolder } from '../../workspace/memory/memory-paths.ts'
import { openPersonsFiles } from '../../workspace/memory/persons-files.ts'
import { openScopedMemory } from '../../workspace/memory/scope-memory.ts'
import { remarksOnProof } from '../engine-of-project.ts'
import type { Run } from '../open-run.ts'

/** Files that rounds of a session get and leave: its memory, those of its scopes, and the work directory. */
interface SessionFiles {
  memory: Memory
  scopes: ScopeFiles
  folder: FolderFiles
  personsFiles: PersonsFiles
  workTree: WorkTree
}

/**
 * Opens the files of a session that runs.
 * @param ending aborts when it must end
 */
export function openSessionFiles(
  { records, settings, fingerprints, traces, repository, remarks, redactor }: Run,
  log: SessionLog,
  place: SessionFolder,
  ending: AbortSignal,
): SessionFiles {
  const { id } = log.state
  const { gates } = withoutScope(log.state)
  const keepsTraces = log.state.kind?.usesShell === true
  const { memory, scopes, folder } = openScopedMemory({
    place,
    directory: records.directory,
    goal: log.state.goal,
    scope: () => log.state.scope,
    head: async () => (repository ? await readHead(repository) : { commit: null, branch: null }),
    redact: text => redactor.text(text),
  })
  let next: Parameters<ScopeFiles['make']>[0] | null = null
  /** Rules for a look at the files. Before a scope begins, its look must already follow its rules. */
  const looking = (): SessionState => {
    const { state } = log
    if (state.scope !== null || next === null) return state
    return { ...state, gates: [...state.gates, ...next.gates], personSaid: [...state.personSaid, next.goal] }
  }
  const looks = lookBySessionRules(fingerprints, {
    path: records.ignoreRules(id),
    ending,
    state: looking,
    onRemark: remark => void remarks.push(remark),
    remarksAtStart: git => remarksOnProof(git, { ...settings, gates }),
  })
  return {
    memory,
    folder,
    personsFiles: openPersonsFiles({
      directory: records.directory,
      folder: place.folder,
      copies: join(place.lastGood, 'persons'),
    }),
    scopes: {
      ...scopes,
      async make(scope) {
        await scopes.make(scope)
        next = scope
      },
    },
    workTree: {
      async take(signal, how) {
        if (how === 'anew') fingerprints.takeNothingForGranted()
        if (log.state.scope !== null) next = null
        fingerprints.protect(globsLookedAt(gatesOfAll(looking()), log.state.kind?.addsGates))
        // Files that codex's sandbox created are neither the agent's work, nor input for a gate. If commands run next to the
        // rounds, keep them: another app-server may need them.
        if (keepsTraces) fingerprints.passOver(traces.isLaid)
        else await traces.removeFiles()
        return await looks.take(signal)
      },
      changed: (before, after) => fingerprints.changed(before, after),
    },
  }
}
