/** Which of `count` rows are shown where only `room` fit: the selected one is among them, in the middle if it can be. */
export function scrolled(count: number, selected: number, room: number): { from: number; to: number } {
  const shown = Math.max(0, Math.min(count, room))
  const from = Math.max(0, Math.min(selected - Math.floor(shown / 2), count - shown))
  return { from, to: from + shown }
}
