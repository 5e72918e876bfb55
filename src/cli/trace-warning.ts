import { basename } from 'node:path'

/**
 * Whether codex warns that it does not use the configuration of a project where there is none, only the empty folders
 * that its own sandbox lays there (`SandboxTraces.isTrace`).
 */
export function isTraceWarning(warning: string, isTrace: (path: string) => boolean): boolean {
  if (!warning.startsWith('Project-local config')) return false
  const listed = [...warning.matchAll(/^\s*\d+\. (.+)$/gm)].map(([, path = '']) => path.trim())
  return listed.length > 0 && listed.every(path => basename(path) === '.codex' && isTrace(path))
}
