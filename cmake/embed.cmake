# cmake -DOUTPUT=F.c -DNAME=n -DINPUTS=a;b -P embed.cmake: makes a C file that defines `const unsigned char n[]`, the text of the inputs.
set(bytes "")
foreach(input IN LISTS INPUTS)
    file(READ ${input} hex HEX)
    string(APPEND bytes ${hex})
endforeach()
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "/* Made by cmake/embed.cmake. */\nextern const unsigned char ${NAME}[];\nconst unsigned char ${NAME}[] = {\n${bytes}0};\n")
