import type { CliContext } from '../context.ts'

/** Reads no more, until Ink does again; Ink only stops to listen, and what is typed elsewhere would be lost in part. */
export async function letGoOfKeys({ stdin, clock }: Pick<CliContext, 'stdin' | 'clock'>): Promise<void> {
  await clock.wait(0)
  stdin.pause()
  await clock.wait(0)
}
