/** A command of the project that looks as if it tests or builds it; nobody has run it yet. */
export interface ProjectCommand {
  /** A line for a shell, to be run in the work directory. */
  run: string
  kind: 'test' | 'build' | 'lint' | 'run'
  /** The file that it was found in, relative to the work directory. */
  from: string
}

/** What was gathered of a project, in numbers and names; all paths are relative to the work directory, with `/`. */
export interface ContextFacts {
  /** `null` without a repository, with a detached head, or where it cannot be read. */
  branch: string | null
  /** How many files differ from the last commit, new ones included. */
  dirty: number
  /** How many files there are that git does not ignore. */
  entries: number
  /** The manifests that were read. */
  manifests: string[]
  /** The files with rules of the project that the context holds. */
  rules: string[]
  commands: ProjectCommand[]
  /** The files that the request names, those with `@` first. */
  mentioned: string[]
  /** What was left out, shortened or could not be read: a sentence each. */
  notes: string[]
}
