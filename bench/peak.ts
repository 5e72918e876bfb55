import { readFileSync } from 'node:fs'
import { type CommandOptions, runCommand } from './run-command.ts'

const SAMPLE_MS = 5

/** A command that has ended: how long it took, and the highest resident set of its own process in MB (10^6 bytes). */
interface Peak {
  wallMs: number
  peakMb: number
}

/** As `runCommand`, and looks what the most is that its process has in memory; Linux. */
export async function peakOf(
  program: string,
  args: readonly string[],
  expected: number,
  options: Omit<CommandOptions, 'onStart'> = {},
): Promise<Peak> {
  let peakKib = 0
  let sampler: NodeJS.Timeout | undefined
  try {
    const { wallMs } = await runCommand(program, args, expected, {
      ...options,
      onStart: pid => {
        sampler = setInterval(() => {
          peakKib = Math.max(peakKib, kibOf(pid, 'VmHWM'))
        }, SAMPLE_MS)
      },
    })
    return { wallMs, peakMb: (peakKib * 1024) / 1e6 }
  } finally {
    clearInterval(sampler)
  }
}

/** A line of `/proc/PID/status` in KiB: what is resident, or the most that ever was; 0 if the process has ended. */
export function kibOf(pid: number, line: 'VmRSS' | 'VmHWM'): number {
  try {
    return Number(new RegExp(`^${line}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0
  }
}
