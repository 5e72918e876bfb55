/** The words of the person that the input of a round begins with. */
const PERSONS_WORDS =
  /^(?:The goal, in the words of the person\. .*\n\n\[begin (\w+)\]\n[\s\S]*?\n\[end \1\]\n\n)?(?:What the person has said later\. .*\n\n\[begin (\w+)\]\n[\s\S]*?\n\[end \2\]\n\n)?(?:Not all of it stands here\. .*\n\n)?/

/** What a round is asked for by its template: its input without the words of the person. */
export function askedIn(input: string): string {
  return input.replace(PERSONS_WORDS, '')
}
