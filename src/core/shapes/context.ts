/** A project command that seems to test or build it; not run yet. */
export interface ProjectCommand {
  /** A shell command line for the work directory. */
  run: string
  kind: 'test' | 'build' | 'lint' | 'run'
  /** The file that it was found in, relative to the work directory. */
  from: string
}

/** Facts about a project, in numbers and names; all paths are relative to the work directory, with `/`. */
export interface ContextFacts {
  /** Null: no repository, a detached head, or unreadable. */
  branch: string | null
  /** Number of files that differ from the last commit, including new ones. */
  dirty: number
  /** Number of files that git does not ignore. */
  entries: number
  /** Manifests that were read. */
  manifests: string[]
  /** Files with project rules that are in the context. */
  rules: string[]
  commands: ProjectCommand[]
  /** The files that the request names, those with `@` first. */
  mentioned: string[]
  /** Omitted, shortened or unreadable parts: a sentence each. */
  notes: string[]
}
