import { basename } from 'node:path'

/**
 * Whether codex warns that it does not use the configuration of a project where there is none, only the empty folder that
 * is kept for its sandbox (`SandboxTraces.keep`).
 */
export function isOfKeptFolder(warning: string, kept: ReadonlySet<string>): boolean {
  if (!warning.startsWith('Project-local config')) return false
  const listed = [...warning.matchAll(/^\s*\d+\. (.+)$/gm)].map(([, path = '']) => path.trim())
  return listed.length > 0 && listed.every(path => basename(path) === '.codex' && kept.has(path))
}
